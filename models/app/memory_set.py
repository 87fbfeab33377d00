"""The memories of a space as a set: they come, change and go, with marks on what they contradict; each change is told.

A memory too many is the candidate. It has a number, but nobody is told of it before it has a slot.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

import msgspec

from models import events
from models.app.rules import CompactionDecision, MemorySubject, merged_into
from models.app.state import KeptMemory, SpaceState, facts_to_keep
from models.errors import NotCompacted
from models.events.app import MemoryCause, MemoryToKeep, NotableKind
from models.language.contradiction import Facts, conflicts, matter_of, outdates, sentences_of
from models.language.likeness import topics_in
from models.policy import Policy
from models.state.entity import Emission, same_fields
from models.state.seen import MOST_SHORT_IDS, SHORT_ID, short_id

_KINDS = frozenset(kind.value for kind in NotableKind)
"""Tags that are no topics."""


class MemorySet(Emission[events.SpaceOutput]):
    """The memories of a space while one event is folded, and what is told of them.

    Attributes:
        now: The broker's time of the event's record.
        owner: App and user whose space it is; an app's own names no user.
    """

    def __init__(
        self,
        state: SpaceState,
        event: events.SpaceEvent | events.SpaceErasure,
        position: events.Position,
        now: datetime,
        policy: Policy,
    ) -> None:
        of_user = not isinstance(event, events.ConversationEnded) or event.space == "user"
        app_id, user_id = self.owner = event.app_id, event.user_id if of_user else ""
        super().__init__(events.space_key(app_id, user_id), app_id, user_id, position, event.timestamp)
        self.now = now
        self._state, self._head = state, state.head
        self._policy = policy.apps
        self._space: events.Space = "user" if user_id else "app"

    @property
    def _has_room(self) -> bool:
        return len(self._state.memories) < self._policy.most

    def _to_decide_on(self) -> tuple[list[MemoryToKeep], MemoryToKeep]:
        """Memories for the decider, the oldest first, and the new one."""
        kept = sorted(self._state.memories.values(), key=lambda memory: (memory.created_at, memory.memory_id))
        *others, new = kept if self._state.candidate is None else [*kept, self._state.candidate]
        return [memory.to_keep() for memory in others], new.to_keep()

    def _known_facts(self) -> dict[str, Facts]:
        """Facts of sentences of memories, where they are kept with them."""
        kept = [memory for memory in self._state.memories.values() if memory.facts is not None]
        return {
            said: of for each in kept for said, of in zip(sentences_of(each.content), each.facts or (), strict=False)
        }

    def _subjects(self) -> dict[int, MemorySubject]:
        """User and topics of each memory by its number, the candidate's too."""
        state = self._state
        memories = [*state.memories.values(), *([state.candidate] if state.candidate else [])]
        return {each.memory_id: MemorySubject(each.user_id, frozenset(each.tags) - _KINDS) for each in memories}

    def _made_of(self, session_id: str) -> int | None:
        """Slot of the latest memory that was made of a session and may be made anew; a pinned one may not."""
        slots = self._slots(lambda each: each.session_id == session_id and not each.pinned)
        return slots[-1] if slots else None

    def _add(self, memory: KeptMemory) -> None:
        """A new memory, in the lowest free slot; the candidate where there is none."""
        self._take_outdated(memory)
        if self._has_room:
            self._change(self._state.free_slot(), memory, "created")
        else:
            self._state.candidate = memory

    def _change(self, slot: int, memory: KeptMemory, cause: MemoryCause) -> None:
        """Put a memory into its slot and mark what contradicts it, on both sides."""
        if cause == "remade":
            self._take_outdated(memory)
        others = {other_slot: other for other_slot, other in self._each() if other_slot != slot}
        known = self._known_facts()
        content = memory.content
        against = tuple(other.memory_id for other in others.values() if conflicts(content, other.content, known))
        memory = msgspec.structs.replace(memory, conflicts_with=against, facts=facts_to_keep(content, known))
        self._put(slot, memory, cause)
        for other_slot, other in others.items():
            marks = [each for each in other.conflicts_with if each != memory.memory_id]
            self._mark(other_slot, other, [*marks, memory.memory_id] if other.memory_id in against else marks)

    def _take_outdated(self, memory: KeptMemory) -> None:
        """What its user said before loses the dates, sums and places that are other ones now; pinned it stays."""
        now = [each for each in sentences_of(memory.content) if matter_of(each)]
        for slot, other in self._each() if now else ():
            if other.memory_id == memory.memory_id or other.pinned or other.updated_at > memory.updated_at:
                continue
            said = sentences_of(other.content) if other.user_id == memory.user_id else ()
            left = [each for each in said if not any(outdates(later, each) for later in now)]
            if len(left) == len(said):
                continue
            if all(map(topics_in, left)):
                self._drop([slot], "outdated")
                continue
            content = " ".join(left)
            facts = facts_to_keep(content, self._known_facts())
            self._put(slot, msgspec.structs.replace(other, content=content, facts=facts), "outdated")

    def _drop(self, slots: Collection[int], cause: MemoryCause) -> None:
        """Memories go; others contradict them no longer.

        The text of one that went is not told again, nor, of an erased one, whose it was.
        """
        gone = {slot: self._state.drop(slot) for slot in slots}
        for slot, memory in gone.items():
            empty = KeptMemory(
                *(memory.memory_id, "", 0.0, (), "", "", 0, (), memory.created_at),
                updated_at=max(memory.updated_at, self.timestamp),
                made_by="",
            )
            named = ("", "") if cause == "erased" else (memory.session_id, memory.user_id)
            self._tell(slot, empty, cause, named, active=False)
        numbers = {memory.memory_id for memory in gone.values()}
        for slot, other in self._each():
            self._mark(slot, other, [each for each in other.conflicts_with if each not in numbers])

    def _slots(self, is_meant: Callable[[KeptMemory], bool]) -> list[int]:
        """Slots of the chosen memories, by their numbers."""
        return [slot for slot, memory in self._each() if is_meant(memory)]

    def _compact(
        self,
        decision: CompactionDecision,
        decided_by: str,
        memories: Sequence[MemoryToKeep],
        new: MemoryToKeep,
        fallback: str = "",
    ) -> None:
        """Carry out a decision that `refusal` does not refuse; afterwards there is one less, the candidate among them.

        Memories are those that were decided on (`_to_decide_on`); the event names the conversation of the candidate.

        Raises:
            NotCompacted: There are more, or fewer.
        """
        state, candidate = self._state, self._state.candidate
        edits, target_id = decision.action == "edit", decision.target_memory_id
        gone_id = merged_into(decision, memories, new) if edits else target_id
        kept = [memory for _, memory in self._each()] + ([candidate] if candidate else [])
        after = {memory.memory_id: memory for memory in kept}
        gone = after.pop(gone_id)
        if edits:
            after[target_id] = self._merged(after[target_id], gone, decision.new_content or "")
        state.head.compactions += 1
        before = [*memories, new]
        self.emit(
            events.AppMemoriesCompacted,
            *named(candidate),
            space=self._space,
            action=decision.action,
            target_memory_id=target_id,
            merged_memory_id=gone_id if edits else None,
            new_content=decision.new_content if edits else None,
            reason=decision.reason,
            decided_by=decided_by,
            fallback=fallback,
            before=before,
            after=[after[memory.memory_id].to_keep() for memory in before if memory.memory_id in after],
        )
        state.candidate = None
        if (slot := state.slot_of(gone_id)) is not None:
            self._drop([slot], "merged" if edits else "compacted")
        if edits and (slot := state.slot_of(target_id)) is not None:
            self._change(slot, after[target_id], "merged")
        if candidate is not None and candidate.memory_id in after:
            self._change(state.free_slot(), after[candidate.memory_id], "created")
        if len(state.memories) != len(after):
            raise NotCompacted(f"{len(state.memories)} memories after a compaction instead of {len(after)}")

    def _merged(self, target: KeptMemory, gone: KeptMemory, content: str) -> KeptMemory:
        """What two memories are together. It is shared only where both were: no text goes further than it did."""
        named = dict.fromkeys((*target.related, *gone.related, gone.session_id))
        named.pop(target.session_id, None)
        related = tuple(named)
        surplus = max(0, len(related) - self._policy.related)
        return msgspec.structs.replace(
            target,
            content=content,
            importance=max(target.importance, gone.importance),
            tags=tuple(dict.fromkeys((*target.tags, *gone.tags)))[: self._policy.tags],
            related=related[surplus:],
            unnamed=(target.unnamed + gone.unnamed + b"".join(map(short_id, related[:surplus])))[
                : MOST_SHORT_IDS * SHORT_ID
            ],
            updated_at=max(target.updated_at, gone.updated_at, self.timestamp),
            shared_with=tuple(app for app in target.shared_with if app in gone.shared_with),
        )

    def _mark(self, slot: int, memory: KeptMemory, conflicts_with: Sequence[int]) -> None:
        marks = tuple(sorted(conflicts_with))
        if marks != memory.conflicts_with:
            self._put(slot, msgspec.structs.replace(memory, conflicts_with=marks), "conflict")

    def _put(self, slot: int, memory: KeptMemory, cause: MemoryCause) -> None:
        """Keep a memory, and tell of it."""
        self._state.put(slot, memory)
        self._tell(slot, memory, cause, (memory.session_id, memory.user_id), active=True)

    def _tell(self, slot: int, memory: KeptMemory, cause: MemoryCause, named: tuple[str, str], *, active: bool) -> None:
        self.emit(
            events.AppMemoryChanged,
            *named,
            **same_fields(memory, events.AppMemoryChanged),
            space=self._space,
            slot=slot,
            active=active,
            cause=cause,
            related_conversations=list(memory.related),
        )

    def _each(self) -> list[tuple[int, KeptMemory]]:
        return sorted(self._state.memories.items(), key=lambda each: each[1].memory_id)


def named(memory: KeptMemory | None) -> tuple[str, str]:
    """Session and user of a memory, so that an erasure of them finds what holds its text."""
    return (memory.session_id, memory.user_id) if memory is not None else ("", "")
