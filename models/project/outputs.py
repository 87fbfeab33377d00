"""Outputs of the fold of project memory, with deterministic ids: each item once, as it is at the end."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from models import events
from models.events.project import SummarisedKind
from models.events.project_items import ConversationChunk, ProjectEpisode
from models.policy import Policy
from models.project.short_term import RecentMessage
from models.project.state import ProjectState
from models.state import entity
from models.state.entity import same_fields
from models.text.words import CHARS_PER_TOKEN

KIND_OF: dict[type[events.ProjectItem], events.ItemKind] = {
    events.ProjectMemory: "memory",
    events.ProjectEpisode: "episode",
    events.ConversationChunk: "chunk",
    events.ProjectConversation: "conversation",
    events.PendingFact: "pending",
}
DETAIL_CHARS = 500
"""Of why a command was refused: a cycle may be long."""


class ProjectEmission(entity.Emission[events.ProjectOutput]):
    """Outputs of one event, in order: items, what happened, and at last how far the project is.

    An item that changes more than once with one event is told once, with the cause that was first; that it went is
    told in its place, before what comes next into its slot.

    Attributes:
        now: The broker's time of the event's record.
    """

    def __init__(
        self,
        state: ProjectState,
        event: events.ProjectEvent | events.ProjectErasure,
        position: events.Position,
        now: datetime,
        policy: Policy,
    ) -> None:
        super().__init__(state.key, event.app_id, "", position, event.timestamp)
        self.now = now
        self._position = position
        self._state, self._head = state, state.head
        self._rules, self._policy = policy, policy.projects
        self._project_id = event.project_id
        self._items: dict[tuple[str, int, str], events.ProjectItemChanged] = {}
        self._changed = False

    def id_kind(self, kind: str) -> str:
        """The revision tells the steps of one record apart."""
        return f"{kind}@{self._head.revision}"

    # --- items

    def item(self, item: events.ProjectItem, slot: int, cause: events.ItemCause, user_id: str = "") -> None:
        """An item came or changed; `user_id` is the user of a conversation."""
        said = (item.id, user_id) if isinstance(item, events.ProjectConversation) else said_first(item)
        self._item((KIND_OF[type(item)], slot, item.id), cause, item, said)

    def gone(
        self, kind: events.ItemKind, slot: int, item_id: str, cause: events.ItemCause, said: tuple[str, str] = ("", "")
    ) -> None:
        """An item went: its text is not told again, nor, of an erased one, where it was said (session and user)."""
        self._item((kind, slot, item_id), cause, None, ("", "") if cause == "erased" else said)

    def _item(
        self,
        place: tuple[events.ItemKind, int, str],
        cause: events.ItemCause,
        item: events.ProjectItem | None,
        said: tuple[str, str],
    ) -> None:
        known = self._items.get(place)
        if known is not None and known.active and item is not None:
            cause = known.cause
        kind, slot, item_id = place
        common = self.common(f"project_item_changed/{kind}/{slot}/{item_id}", *said)
        if known is not None:
            common["id"] = known.id
        self._items[place] = events.ProjectItemChanged(
            **common,
            project_id=self._project_id,
            revision=self._head.revision + 1,
            kind=kind,
            slot=slot,
            item_id=item_id,
            active=item is not None,
            cause=cause,
            **({} if item is None else {kind: item}),  # type: ignore[arg-type]
        )

    def ask_summary(self, item: ConversationChunk | ProjectEpisode, said: Sequence[RecentMessage]) -> None:
        """Ask a slower summariser for an item, where the policy says so, and tell it these messages."""
        if not (self._policy.ask and said):
            return
        chars = self._policy.asked_tokens * CHARS_PER_TOKEN // len(said)
        kind: SummarisedKind = "episode" if isinstance(item, ProjectEpisode) else "chunk"
        user_id = next((message.user_id for message in said if message.user_id), "")
        self.outputs.append(
            events.ProjectSummaryRequested(
                **self.common(f"project_summary_requested/{kind}/{item.id}", item.conversation_id, user_id),
                **same_fields(item, events.ProjectSummaryRequested, "summary", "kind"),
                project_id=self._project_id,
                kind=kind,
                item_id=item.id,
                summary=item.summary if kind == "episode" else "",
                turns=[events.RequestedTurn(message.role, message.content[:chars]) for message in said],
            )
        )

    # --- what happened

    def answered(self, action: str, by: str, result: events.DeedResult) -> None:
        """Emit the audit of a command by hand, and keep its outcome."""
        self.audited(action, by, result)
        self._state.answer(msgspec.structs.replace(result, detail=result.detail[:DETAIL_CHARS]))
        self._changed = True

    def audited(self, action: str, by: str, result: events.DeedResult) -> None:
        """Emit the audit of an action."""
        fields = same_fields(result, events.ProjectAudited)
        self.emit(events.ProjectAudited, project_id=self._project_id, action=action, by=by, **fields)

    def finish(self) -> list[events.ProjectOutput]:
        """Finish the event and return all outputs; any change raises the project's revision."""
        head = self._head
        self.outputs = [*self._items.values(), *self.outputs]
        if self._state.known and (self._items or self._changed):
            head.revision += 1
            self.emit(
                events.ProjectChanged,
                **same_fields(head, events.ProjectChanged, "memories", "seen"),
                **same_fields(head.memories, events.ProjectChanged),
                memories=head.memories.count,
                seen={str(partition): offset for partition, (offset, _) in sorted(head.seen.items())},
                results=self._state.results,
            )
        return self.outputs


def said_first(item: events.ProjectItem) -> tuple[str, str]:
    """Conversation and user of the first place where an item was said; empty for what was written by hand."""
    if isinstance(item, events.ProjectEpisode | events.ConversationChunk):
        return item.conversation_id, ""
    sources = item.sources if isinstance(item, events.ProjectMemory) else []
    sources = [item.source] if isinstance(item, events.PendingFact) else sources
    return (sources[0].conversation_id, sources[0].user_id) if sources else ("", "")
