"""App memory: one space of at most ten memories, made of conversations that ended.

`fold` takes the space and one event of `commands.v1`, and gives the space after it and what is to be emitted. It is the
same in the stream and in replay; the clock of a space is the broker's time of the record.

- **Creation**: a conversation that ended becomes a memory, by rules at once, or by a slower stage that is asked.
- **Compaction**: one too many is the candidate, of which no reader knows. It is decided which of all goes, or which two
  become one; then there are as many as may be. A decision that cannot be carried out lets the oldest go.
- **Energy**: both begin only while there is enough (`app/energy.py`); else they wait, and nothing is dropped.
- **Expiry**, where the policy says so: a memory that nothing changed for so long goes, if need be with a `WorkDue`.
- **Admins** edit, pin, share, delete and purge. Each command is audited and answered, also if it changes nothing.

`work.py` has the work, `memory_set.py` what becomes of the memories, `state.py` what is kept.
"""

from datetime import datetime
from typing import Final, Literal

import msgspec

from models.app.memory_set import MemorySet
from models.app.outputs import AppEmission
from models.app.state import KeptMemory, SpaceState, paragraph, tags_of
from models.app.work import Worker
from models.events.app import (
    AdminCommand,
    AppInjectionSet,
    AppUninstalled,
    CompactionDecided,
    ConversationEnded,
    MemoriesPurged,
    MemoriesRead,
    MemoryDeleted,
    MemoryEdited,
    MemoryProposed,
    SearchSaved,
    SpaceEvent,
    SpaceModeSet,
    SpaceOutput,
    WorkDue,
)
from models.events.base import BY_HAND, NAME_CHARS, CommandResult, Outcome, Position, RequestedTurn
from models.events.erase import SpaceErased, SpaceErasure, SpaceSessionErased
from models.policy import Policy
from models.state.entity import Folding
from models.text.words import estimate_tokens, latest_that_fit

MOST_SEARCHES = 50
"""That are saved of an app's alerts."""


def fold(
    state: SpaceState, event: SpaceEvent | SpaceErasure, position: Position, now: datetime, policy: Policy
) -> list[SpaceOutput]:
    """Fold one event into a space, possibly a new one, which is changed in place.

    Gives what is to be emitted, in order: at last, if anything changed, how far the space is. `position` is the record
    of `commands.v1` that carried the event, `now` the broker's time of it.

    Raises:
        NotCompacted: A compaction left another number of memories than it had to, which is a defect.
    """
    if isinstance(event, SpaceErased):
        state.erase()
        return []
    return _AppStep(state, event, position, now, policy).take(event)


FOLDING: Final = Folding(
    SpaceState,
    lambda state, command, policy: (fold(state, command.event, command.position, command.appended_at, policy), True),
    lambda due, now: WorkDue(app_id=due.app_id, user_id=due.name, timestamp=now),
)


class _AppStep:
    """One event on its way into a space."""

    def __init__(
        self,
        state: SpaceState,
        event: SpaceEvent | SpaceSessionErased,
        position: Position,
        now: datetime,
        policy: Policy,
    ) -> None:
        self._state = state
        self._head = state.head
        self._rules = policy
        self._policy = policy.apps
        self._emission = AppEmission(state, event, position, now, policy.apps)
        self._memories = MemorySet(state, self._emission, policy.apps)
        # Of the log's other records none says that there was time to answer: a worker may be far behind them.
        gives_up = isinstance(event, WorkDue)
        self._worker = Worker(state, self._memories, self._emission, policy, gives_up=gives_up)

    def take(self, event: SpaceEvent | SpaceSessionErased) -> list[SpaceOutput]:
        """Take the event, then go on with what waits."""
        if isinstance(event, MemoriesRead):
            self._emission.audited(event, event.memory_id, event.how, event.count)
            return self._emission.outputs
        before = self._progress()
        match event:
            case ConversationEnded():
                self._ended(event)
            case MemoryProposed():
                self._worker.proposed(event)
            case CompactionDecided():
                self._worker.decided(event)
            case SpaceSessionErased():
                self._erase_sessions(frozenset(event.session_ids))
            case AdminCommand():
                self._admin(event)
        self._expire()
        self._worker.go_on()
        self._head.oldest_at = self._oldest_at()
        if self._emission.outputs or self._progress() != before:
            self._head.app_id, self._head.user_id = self._emission.owner
            self._emission.progress()
        return self._emission.outputs

    def _expire(self) -> None:
        oldest_at, after = self._oldest_at(), self._policy.expire_after
        if oldest_at is not None and after is not None and oldest_at + after <= self._emission.now:
            until = self._emission.now - after
            self._let_go(self._memories.slots(lambda each: not each.pinned and each.updated_at <= until), "expired")

    def _oldest_at(self) -> datetime | None:
        if self._policy.expire_after is None:
            return None
        return min((each.updated_at for each in self._state.memories.values() if not each.pinned), default=None)

    def _progress(self) -> tuple[object, ...]:
        """What may change without anything else being told."""
        head = self._head
        return self._state.waiting, head.requests, head.asked, head.created, head.spent_units

    def _ended(self, ended: ConversationEnded) -> None:
        if not self._state.sees(ended):
            return
        self._head.uninstalled = False
        if self._policy.enabled and not self._worker.skips(ended):
            self._state.wait(_fitting(ended, self._rules))

    def _erase_sessions(self, session_ids: frozenset[str]) -> None:
        """Everything that was made of them, or waits to be, goes."""
        self._state.stop_waiting(lambda ended: ended.session_id in session_ids)
        candidate = self._state.candidate
        if candidate is not None and candidate.is_of(session_ids):
            self._state.candidate = self._head.asked = None
        self._let_go(self._memories.slots(lambda memory: memory.is_of(session_ids)), "erased")

    def _let_go(self, slots: list[int], cause: Literal["deleted", "erased", "expired"]) -> None:
        """Memories go, and with them what is asked: an answer on its way could bring their text back."""
        if slots:
            self._head.asked = None
        self._memories.drop(slots, cause)

    # --- admins

    def _admin(self, command: AdminCommand) -> None:
        memory_id: int | None = None
        outcome: Outcome = "unchanged"
        count = 0
        match command:
            case MemoryEdited():
                memory_id, outcome = command.memory_id, self._edit(command)
                count = int(outcome == "done")
            case MemoryDeleted():
                memory_id, slot = command.memory_id, self._state.slot_of(command.memory_id)
                outcome, count = ("not_found", 0) if slot is None else ("done", 1)
                self._let_go([] if slot is None else [slot], "deleted")
            case MemoriesPurged():
                outcome, count = self._purge()
            case AppUninstalled():
                outcome, count = self._uninstall(command)
            case SpaceModeSet() if command.mode is not self._head.mode:
                outcome, self._head.mode = "done", command.mode
            case AppInjectionSet() if command.inject is not self._head.inject:
                outcome, self._head.inject = "done", command.inject
            case SearchSaved():
                outcome = self._save_search(command)
        self._emission.audited(command, memory_id, outcome, count)
        self._head.results.append(CommandResult(request_id=command.request_id, outcome=outcome, count=count))
        del self._head.results[: -self._policy.results]

    def _save_search(self, command: SearchSaved) -> Outcome:
        others = [each for each in self._head.searches if each.title != command.search.title]
        searches = sorted([*others, command.search] if command.kept else others, key=lambda each: each.title)
        if len(searches) > MOST_SEARCHES:
            return "too_many"
        if searches == self._head.searches:
            return "unchanged" if command.kept else "not_found"
        self._head.searches = searches
        return "done"

    def _edit(self, command: MemoryEdited) -> Outcome:
        slot = self._state.slot_of(command.memory_id)
        if slot is None:
            return "not_found"
        known = self._state.memories[slot]
        content = paragraph(command.content or "")
        if len(content) > self._policy.most_content_chars:
            return "too_long"
        pinned = sum(memory.pinned for memory in self._state.memories.values())
        if command.pinned and not known.pinned and pinned >= self._policy.most_pinned:
            return "too_many_pinned"
        edited = self._edited(known, command, content)
        if edited == known:
            return "unchanged"
        self._head.edited += 1
        if edited.content != known.content:
            self._head.asked = None  # an answer on its way has seen what stands here no longer
        at = max(known.updated_at, command.timestamp)
        self._memories.change(slot, msgspec.structs.replace(edited, updated_at=at), "edited")
        return "done"

    def _edited(self, known: KeptMemory, command: MemoryEdited, content: str) -> KeptMemory:
        shared_with = dict.fromkeys(command.shared_with or ())
        shared_with.pop(self._head.app_id, None)
        rewritten = bool(content) and content != known.content
        return msgspec.structs.replace(
            known,
            content=content if rewritten else known.content,
            made_by=BY_HAND if rewritten else known.made_by,
            importance=known.importance if command.importance is None else command.importance,
            tags=known.tags if command.tags is None else tuple(tags_of(command.tags, self._policy.tags)),
            pinned=known.pinned if command.pinned is None else command.pinned,
            shared_with=known.shared_with
            if command.shared_with is None
            else tuple(shared_with)[: self._policy.shared_with],
        )

    def _purge(self) -> tuple[Outcome, int]:
        """All memories, the candidate and what waits; an answer that is still on its way is not waited for."""
        state = self._state
        waited = state.waiting
        state.stop_waiting(lambda _: True)
        state.candidate = self._head.asked = None
        slots = self._memories.slots(lambda _: True)
        self._memories.drop(slots, "purged")
        return ("done" if slots or waited else "unchanged"), len(slots)

    def _uninstall(self, command: AppUninstalled) -> tuple[Outcome, int]:
        outcome, count = self._purge() if command.purge_memories else ("unchanged", 0)
        changed = outcome == "done" or not self._head.uninstalled
        self._head.uninstalled = True
        return ("done" if changed else "unchanged"), count


def _fitting(ended: ConversationEnded, policy: Policy) -> ConversationEnded:
    """As much of a conversation as may have to wait in the state: what the sessions role sends fits."""
    memory, apps = policy.memory, policy.apps
    turns = [RequestedTurn(turn.role, turn.content[: apps.asked_turn_chars]) for turn in ended.turns]
    return msgspec.structs.replace(
        ended,
        reason=ended.reason[:NAME_CHARS],
        summary=ended.summary[: memory.episode_sentences * (memory.sentence_chars + 1)],
        key_topics=[topic[:NAME_CHARS] for topic in ended.key_topics[: memory.key_topics]],
        notables=[
            msgspec.structs.replace(each, text=each.text[: apps.notable_chars])
            for each in ended.notables[-apps.notables :]
        ],
        turns=latest_that_fit(turns, apps.asked_tokens, lambda turn: estimate_tokens(turn.content)),
        earlier=latest_that_fit(ended.earlier, apps.asked_tokens, estimate_tokens),
    )
