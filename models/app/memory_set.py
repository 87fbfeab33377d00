"""The memories of a space as a set: they come, change and go, with marks on what they contradict; each change is told.

A memory too many is the candidate. It has a number, but nobody is told of it before it has a slot.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

import msgspec

from models.app.outputs import AppEmission, Made
from models.app.rules import MemorySubject, merged_into
from models.app.state import KeptMemory, SpaceState, facts_to_keep
from models.errors import NotCompacted
from models.events.app import MemoryCause, MemoryToKeep, NotableKind
from models.language.contradiction import Facts, conflicts, matter_of, outdates, sentences_of
from models.language.likeness import topics_in
from models.policy.app import AppPolicy
from models.state.seen import MOST_SHORT_IDS, SHORT_ID, short_id

_KINDS = frozenset(kind.value for kind in NotableKind)
"""Tags that are no topics."""


class MemorySet:
    """Changes the memories of a space, and tells of it."""

    def __init__(self, state: SpaceState, emission: AppEmission, policy: AppPolicy) -> None:
        self._state = state
        self._emission = emission
        self._policy = policy

    @property
    def has_room(self) -> bool:
        """True if one more fits."""
        return len(self._state.memories) < self._policy.most

    @property
    def surplus(self) -> int:
        """Memories beyond what the policy allows, but for the candidate: it may have allowed more before."""
        return max(0, len(self._state.memories) - self._policy.most)

    def to_decide_on(self) -> tuple[list[MemoryToKeep], MemoryToKeep]:
        """Memories for the decider, the oldest first, and the new one."""
        kept = sorted(self._state.memories.values(), key=lambda memory: (memory.created_at, memory.memory_id))
        if self._state.candidate is None:
            kept, candidate = kept[:-1], kept[-1]
        else:
            candidate = self._state.candidate
        return [memory.to_keep() for memory in kept], candidate.to_keep()

    def known_facts(self) -> dict[str, Facts]:
        """Facts of sentences of memories, where they are kept with them."""
        kept = [memory for memory in self._state.memories.values() if memory.facts is not None]
        return {
            said: of for each in kept for said, of in zip(sentences_of(each.content), each.facts or (), strict=False)
        }

    def subjects(self) -> dict[int, MemorySubject]:
        """User and topics of each memory by its number, the candidate's too."""
        state = self._state
        memories = [*state.memories.values(), *([state.candidate] if state.candidate else [])]
        return {each.memory_id: MemorySubject(each.user_id, frozenset(each.tags) - _KINDS) for each in memories}

    def made_of(self, session_id: str) -> int | None:
        """Slot of the latest memory that was made of a session and may be made anew; a pinned one may not."""
        mine = [
            (memory.memory_id, slot)
            for slot, memory in self._state.memories.items()
            if memory.session_id == session_id and not memory.pinned
        ]
        return max(mine)[1] if mine else None

    def add(self, memory: KeptMemory) -> None:
        """A new memory, in the lowest free slot; the candidate where there is none."""
        self._take_outdated(memory)
        if self.has_room:
            self.change(self._state.free_slot(), memory, "created")
        else:
            self._state.candidate = memory

    def admit_candidate(self) -> None:
        """There is room for it by now."""
        candidate, self._state.candidate = self._state.candidate, None
        assert candidate is not None, "there is one"  # noqa: S101
        self.add(candidate)

    def change(self, slot: int, memory: KeptMemory, cause: MemoryCause) -> None:
        """Put a memory into its slot and mark what contradicts it, on both sides."""
        if cause == "remade":
            self._take_outdated(memory)
        others = {other_slot: other for other_slot, other in self._each() if other_slot != slot}
        known = self.known_facts()
        content = memory.content
        against = tuple(other.memory_id for other in others.values() if conflicts(content, other.content, known))
        memory = msgspec.structs.replace(memory, conflicts_with=against, facts=facts_to_keep(content, known))
        self._state.put(slot, memory)
        self._emission.memory(slot, memory, cause)
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
                self.drop([slot], "outdated")
                continue
            content = " ".join(left)
            known = msgspec.structs.replace(other, content=content, facts=facts_to_keep(content, self.known_facts()))
            self._state.put(slot, known)
            self._emission.memory(slot, known, "outdated")

    def drop(self, slots: Collection[int], cause: MemoryCause) -> None:
        """Memories go; others contradict them no longer."""
        gone = {slot: self._state.drop(slot) for slot in slots}
        for slot, memory in gone.items():
            self._emission.gone(slot, memory, cause)
        numbers = {memory.memory_id for memory in gone.values()}
        for slot, other in self._each():
            self._mark(slot, other, [each for each in other.conflicts_with if each not in numbers])

    def slots(self, is_meant: Callable[[KeptMemory], bool]) -> list[int]:
        """Slots of the chosen memories, by their numbers."""
        return [slot for slot, memory in self._each() if is_meant(memory)]

    def compact(self, made: Made, at: datetime, memories: Sequence[MemoryToKeep], new: MemoryToKeep) -> None:
        """Carry out a decision that `refusal` does not refuse; afterwards there is one less, the candidate among them.

        Memories are those that were decided on (`to_decide_on`).

        Raises:
            NotCompacted: There are more, or fewer.
        """
        state, decision, candidate = self._state, made.decision, self._state.candidate
        edits = decision.action == "edit"
        gone_id = merged_into(decision, memories, new) if edits else decision.target_memory_id
        kept = [memory for _, memory in self._each()] + ([candidate] if candidate else [])
        after = {memory.memory_id: memory for memory in kept}
        gone = after.pop(gone_id)
        if edits:
            target = after[decision.target_memory_id]
            after[target.memory_id] = self._merged(target, gone, decision.new_content or "", at)
        state.head.compactions += 1
        before = [*memories, new]
        left = [after[memory.memory_id].to_keep() for memory in before if memory.memory_id in after]
        self._emission.compacted(made, gone_id, before, left, candidate)
        self._carry_out(decision.target_memory_id if edits else None, gone_id, after)
        count = len(state.memories) + (state.candidate is not None)
        if count != len(after) or state.candidate is not None:
            raise NotCompacted(f"{count} memories after a compaction instead of {len(after)}")

    def _carry_out(self, edited_id: int | None, gone_id: int, after: Mapping[int, KeptMemory]) -> None:
        state, candidate = self._state, self._state.candidate
        state.candidate = None
        slot = state.slot_of(gone_id)
        if slot is not None:
            self.drop([slot], "compacted" if edited_id is None else "merged")
        edited_slot = None if edited_id is None else state.slot_of(edited_id)
        if edited_id is not None and edited_slot is not None:
            self.change(edited_slot, after[edited_id], "merged")
        if candidate is not None and candidate.memory_id in after:
            self.change(state.free_slot(), after[candidate.memory_id], "created")

    def _merged(self, target: KeptMemory, gone: KeptMemory, content: str, at: datetime) -> KeptMemory:
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
            updated_at=max(target.updated_at, gone.updated_at, at),
            shared_with=tuple(app for app in target.shared_with if app in gone.shared_with),
        )

    def _mark(self, slot: int, memory: KeptMemory, conflicts_with: Sequence[int]) -> None:
        marks = tuple(sorted(conflicts_with))
        if marks != memory.conflicts_with:
            marked = msgspec.structs.replace(memory, conflicts_with=marks)
            self._state.put(slot, marked)
            self._emission.memory(slot, marked, "conflict")

    def _each(self) -> list[tuple[int, KeptMemory]]:
        return sorted(self._state.memories.items(), key=lambda each: each[1].memory_id)
