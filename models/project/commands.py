"""Commands of people on project memory. Each one is audited and answered, also if it changes nothing."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict

from models.events import (
    ConversationStatusSet,
    DeedResult,
    MemorySource,
    PendingFactDecided,
    ProjectDeed,
    ProjectImported,
    ProjectMemoryAdded,
    ProjectMemoryDeleted,
    ProjectMemoryEdited,
    RelationshipSet,
)
from models.events.project import DeedOutcome
from models.policy.project import ProjectPolicy
from models.project.episodes import Episodes
from models.project.imports import Import
from models.project.learning import Learning
from models.project.long_term import New
from models.project.outputs import Emission
from models.project.state import ProjectState
from models.project.talk import Talk


class Done(Struct, frozen=True):
    """What a command came to. Fields as in `DeedResult`."""

    outcome: DeedOutcome
    item_id: str = ""
    detail: str = ""
    count: int = 0


class Deeds:
    """Commands by hand, while one event is folded.

    Args:
        state: The project.
        emission: Hears of what changes.
        talk: Its conversations.
        learning: Its memories and pending facts.
        episodes: Its episodes.
        policy: The rules.
    """

    def __init__(
        self,
        *,
        state: ProjectState,
        emission: Emission,
        talk: Talk,
        learning: Learning,
        episodes: Episodes,
        policy: ProjectPolicy,
    ) -> None:
        self._state = state
        self._emission = emission
        self._talk = talk
        self._learning = learning
        self._episodes = episodes
        self._policy = policy

    def take(self, deed: ProjectDeed) -> None:
        """Do it, audit it and answer it."""
        done = self._do(deed)
        result = DeedResult(request_id=deed.request_id, **asdict(done))
        self._emission.answered(str(deed.__struct_config__.tag), deed.by, result)

    def _do(self, deed: ProjectDeed) -> Done:
        long_term = self._learning.long_term
        match deed:
            case ProjectMemoryAdded():
                done = self._add(deed)
            case ProjectMemoryEdited():
                done = _changed(deed.memory_id, *long_term.edit(deed))
            case ProjectMemoryDeleted():
                done = _changed(deed.memory_id, "done" if long_term.delete(deed.memory_id, "deleted") else "not_found")
            case RelationshipSet():
                done = _changed(deed.source_id, *long_term.relate(deed))
            case PendingFactDecided():
                done = self._decide(deed)
            case ConversationStatusSet():
                done = self._set_status(deed)
            case ProjectImported():
                done = Done(*Import(self._state, self._talk, self._learning, self._episodes, self._policy).take(deed))
            case _:
                raise AssertionError(deed)
        return done

    def _add(self, deed: ProjectMemoryAdded) -> Done:
        new = New(
            type=deed.memory_type,
            content=deed.content.strip(),
            category=deed.category,
            tags=deed.tags,
            subject=deed.subject.strip(),
            importance=deed.importance,
            source=MemorySource(said_at=deed.timestamp, by="hand"),
            valid_from=deed.valid_from or deed.timestamp,
            valid_until=deed.valid_until,
        )
        refused = self._learning.long_term.refusal(new)
        if refused is not None:
            return Done(refused[0], detail=refused[1])
        memory_id, outcome = self._learning.long_term.add(new)
        return _changed(memory_id, outcome)

    def _decide(self, deed: PendingFactDecided) -> Done:
        kept = self._state.pending.get(deed.pending_id)
        if kept is None:
            return Done("not_found", deed.pending_id)
        if not deed.promoted:
            self._learning.drop(deed.pending_id, "deleted")
            return Done("done", deed.pending_id, "", 1)
        memory_id, outcome = self._learning.promote(kept.fact)
        return _changed(memory_id or deed.pending_id, outcome)

    def _set_status(self, deed: ConversationStatusSet) -> Done:
        state = self._state.conversation(deed.conversation_id)
        if state is not None:
            changed = self._talk.set_status(state, deed.status, deed.timestamp, deed.summary)
            return Done("done" if changed else "unchanged", deed.conversation_id, "", int(changed))
        if deed.status != "active":
            return Done("not_found", deed.conversation_id)
        self._talk.begin(self._talk.started(deed.conversation_id, deed.timestamp))
        return Done("done", deed.conversation_id, "", 1)


def _changed(item_id: str, outcome: DeedOutcome, detail: str = "") -> Done:
    return Done(outcome, item_id, detail, int(outcome == "done"))
