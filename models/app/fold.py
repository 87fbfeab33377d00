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

from models import events
from models.app.energy import level_units
from models.app.state import KeptMemory, SpaceState, paragraph, tags_of
from models.app.work import Worker
from models.events import BY_HAND, NAME_CHARS
from models.policy import Policy
from models.state.entity import Folding, same_fields
from models.state.seen import is_new
from models.text.words import estimate_tokens, latest_that_fit

MOST_SEARCHES = 50
"""That are saved of an app's alerts."""
_DIGITS = 6
"""Of units that are told: sums of fractions would else end in noise."""


def fold(
    state: SpaceState,
    event: events.SpaceEvent | events.SpaceErasure,
    position: events.Position,
    now: datetime,
    policy: Policy,
) -> list[events.SpaceOutput]:
    """Fold one event into a space, possibly a new one, which is changed in place.

    Gives what is to be emitted, in order: at last, if anything changed, how far the space is. `position` is the record
    of `commands.v1` that carried the event, `now` the broker's time of it.

    Raises:
        NotCompacted: A compaction left another number of memories than it had to, which is a defect.
    """
    if isinstance(event, events.SpaceErased):
        state.erase()
        return []
    step = _AppStep(state, event, position, now, policy)
    step.gives_up = isinstance(event, events.WorkDue)
    return step.take(event, policy)


FOLDING: Final = Folding(
    SpaceState,
    lambda state, command, policy: (fold(state, command.event, command.position, command.appended_at, policy), True),
    lambda due, now: events.WorkDue(app_id=due.app_id, user_id=due.name, timestamp=now),
)


class _AppStep(Worker):
    """One event on its way into a space."""

    def take(self, event: events.SpaceEvent | events.SpaceSessionErased, policy: Policy) -> list[events.SpaceOutput]:
        """Take the event, then go on with what waits; at last, if anything changed, tell how far the space is."""
        if isinstance(event, events.MemoriesRead):
            self._audited(event, event.memory_id, event.how, event.count)
            return self.outputs
        before = self._progress()
        match event:
            case events.ConversationEnded() if is_new(self._head.seen, event.source, event.id):
                self._head.uninstalled = False
                if self._policy.enabled and not self._skips(event):
                    self._state.wait(_fitting(event, policy))
            case events.MemoryProposed():
                self._proposed(event)
            case events.CompactionDecided():
                self._decided(event)
            case events.SpaceSessionErased():
                self._erase_sessions(frozenset(event.session_ids))
            case events.AdminCommand():
                self._admin(event)
        self._expire()
        self._go_on()
        head, energy = self._head, self._policy.energy
        head.oldest_at = self._oldest_at()
        if self.outputs or self._progress() != before:
            head.app_id, head.user_id = self.owner
            self.emit(
                events.AppMemoriesChanged,
                space=self._space,
                **same_fields(head, events.AppMemoriesChanged, "spent_units"),
                memories=len(self._state.memories),
                waiting=self._state.waiting,
                energy_units=round(level_units(head.energy, self.now, energy), _DIGITS),
                energy_capacity_units=energy.capacity_units,
                spent_units=round(head.spent_units, _DIGITS),
            )
        return self.outputs

    def _expire(self) -> None:
        oldest_at, after = self._oldest_at(), self._policy.expire_after
        if oldest_at is not None and after is not None and oldest_at + after <= self.now:
            until = self.now - after
            self._let_go(self._slots(lambda each: not each.pinned and each.updated_at <= until), "expired")

    def _oldest_at(self) -> datetime | None:
        if self._policy.expire_after is None:
            return None
        return min((each.updated_at for each in self._state.memories.values() if not each.pinned), default=None)

    def _progress(self) -> tuple[object, ...]:
        """What may change without anything else being told."""
        head = self._head
        return self._state.waiting, head.requests, head.asked, head.created, head.spent_units

    def _erase_sessions(self, session_ids: frozenset[str]) -> None:
        """Everything that was made of them, or waits to be, goes."""
        self._state.stop_waiting(lambda ended: ended.session_id in session_ids)
        candidate = self._state.candidate
        if candidate is not None and candidate.is_of(session_ids):
            self._state.candidate = self._head.asked = None
        self._let_go(self._slots(lambda memory: memory.is_of(session_ids)), "erased")

    def _let_go(self, slots: list[int], cause: Literal["deleted", "erased", "expired"]) -> None:
        """Memories go, and with them what is asked: an answer on its way could bring their text back."""
        if slots:
            self._head.asked = None
        self._drop(slots, cause)

    # --- admins

    def _admin(self, command: events.AdminCommand) -> None:
        memory_id: int | None = None
        outcome: events.Outcome = "unchanged"
        count = 0
        match command:
            case events.MemoryEdited():
                memory_id, outcome = command.memory_id, self._edit(command)
                count = int(outcome == "done")
            case events.MemoryDeleted():
                memory_id, slot = command.memory_id, self._state.slot_of(command.memory_id)
                outcome, count = ("not_found", 0) if slot is None else ("done", 1)
                self._let_go([] if slot is None else [slot], "deleted")
            case events.MemoriesPurged():
                outcome, count = self._purge()
            case events.AppUninstalled():
                outcome, count = self._uninstall(command)
            case events.SpaceModeSet() if command.mode is not self._head.mode:
                outcome, self._head.mode = "done", command.mode
            case events.AppInjectionSet() if command.inject is not self._head.inject:
                outcome, self._head.inject = "done", command.inject
            case events.SearchSaved():
                outcome = self._save_search(command)
        self._audited(command, memory_id, outcome, count)
        self._head.results.append(events.CommandResult(request_id=command.request_id, outcome=outcome, count=count))
        del self._head.results[: -self._policy.results]

    def _audited(self, command: events.AdminCommand, memory_id: int | None, outcome: str, count: int) -> None:
        self.emit(
            events.AppMemoryAudited,
            space=self._space,
            action=str(command.__struct_config__.tag),
            memory_id=memory_id,
            by=command.by,
            request_id=command.request_id,
            outcome=outcome,
            count=count,
        )

    def _save_search(self, command: events.SearchSaved) -> events.Outcome:
        others = [each for each in self._head.searches if each.title != command.search.title]
        searches = sorted([*others, command.search] if command.kept else others, key=lambda each: each.title)
        if len(searches) > MOST_SEARCHES:
            return "too_many"
        if searches == self._head.searches:
            return "unchanged" if command.kept else "not_found"
        self._head.searches = searches
        return "done"

    def _edit(self, command: events.MemoryEdited) -> events.Outcome:
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
        self._change(slot, msgspec.structs.replace(edited, updated_at=at), "edited")
        return "done"

    def _edited(self, known: KeptMemory, command: events.MemoryEdited, content: str) -> KeptMemory:
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

    def _purge(self) -> tuple[events.Outcome, int]:
        """All memories, the candidate and what waits; an answer that is still on its way is not waited for."""
        state = self._state
        waited = state.waiting
        state.stop_waiting(lambda _: True)
        state.candidate = self._head.asked = None
        slots = self._slots(lambda _: True)
        self._drop(slots, "purged")
        return ("done" if slots or waited else "unchanged"), len(slots)

    def _uninstall(self, command: events.AppUninstalled) -> tuple[events.Outcome, int]:
        outcome, count = self._purge() if command.purge_memories else ("unchanged", 0)
        changed = outcome == "done" or not self._head.uninstalled
        self._head.uninstalled = True
        return ("done" if changed else "unchanged"), count


def _fitting(ended: events.ConversationEnded, policy: Policy) -> events.ConversationEnded:
    """As much of a conversation as may have to wait in the state: what the sessions role sends fits."""
    memory, apps = policy.memory, policy.apps
    turns = [events.RequestedTurn(turn.role, turn.content[: apps.asked_turn_chars]) for turn in ended.turns]
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
