"""Long-term memories of a project (Layer 3): creation, strengthening, supersession and removal. Pure.

| statement | effect |
|---|---|
| a new one | a memory, valid from the time of the statement; what it supersedes ends there (`project.intervals`) |
| the same content while the memory is valid | strengthened: mentions, importance, confidence, a further source |
| … by the same message again | none |
| … earlier than its start, no other of its subject between | the memory begins earlier |
| … after its end | a second memory: disjoint intervals stay disjoint |
| a late one that supersedes within the interval of a memory | that memory is split into two |
| another content with the same id suffix | another memory |

| removal | effect |
|---|---|
| deleted or erased | relationships to it are removed; what it superseded is valid again, until the next conflict |
| displaced, since there are too many | relationships to it are removed; what it superseded stays ended |
| erasure of a session | memories with other sources stay, valid from the statements of these |
"""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from models.events.project import CommandOutcome, ItemCause
from models.events.project_items import SUPERSEDES, MemorySource, ProjectMemory
from models.project import kept_memories
from models.project.intervals import by_begin, group_of, groups_of, supersedes
from models.project.long_term_edits import Edits
from models.project.secondary_index import IndexedMemories, operation
from models.project.shards import StoredMemory, shard_of
from models.project.store import SHARDS
from models.project.validity import is_valid
from models.state.entity import same_fields
from models.text.words import estimate_tokens


class Forgetting(IndexedMemories):
    """Removal of memories and its effects on others: deleted, displaced, or erased with a session."""

    @operation
    def erase_sessions(self, session_ids: frozenset[str], is_full: Callable[[], bool] = lambda: False) -> bool:
        """Erase memories with only these sources, and these sources of others; False if `is_full` interrupted it."""
        for shard in range(SHARDS):
            for memory_id in self.memories.shard_ids(shard):
                kept = self.get(memory_id)
                sources = [] if kept is None else kept.memory.sources
                left = [each for each in sources if each.conversation_id not in session_ids]
                if kept is None or len(left) == len(sources):
                    continue
                if is_full():
                    return False
                if left:
                    self._without(kept, left)
                else:
                    self.drop(kept, "erased")
        return True

    def let_weakest_go(self, shard: int) -> StoredMemory | None:
        """Remove a shard's weakest memory by importance × decay; archived ones first."""
        there = (self.get(memory_id) for memory_id in self.memories.shard_ids(shard))
        weakest = min((kept for kept in there if kept is not None), key=self._worth, default=None)
        if weakest is not None:
            self.drop(weakest, "displaced")
        return weakest

    def _worth(self, kept: StoredMemory) -> tuple[bool, float]:
        memory = kept.memory
        return not memory.archived, memory.importance * kept_memories.decay_at(memory, self.now, self.policy)

    def drop(self, kept: StoredMemory, cause: ItemCause) -> None:
        """Remove a memory. Unless it is `displaced`, what it superseded is valid again until the next conflict."""
        memory = kept.memory
        group, names = self._group(memory), groups_of(memory)
        named = [edge.target_id for edge in memory.relationships if edge.type == SUPERSEDES]
        closed = [self.get(each) for each in dict.fromkeys([*named, *(each.memory.id for each in group)])]
        self.delist(kept)
        self.unlink_all(memory.id)
        self.forget(kept, cause)
        for each in closed:
            found = None if each is None else self.get(each.memory.id)
            if found is None or found.memory.closed_by != memory.id:
                continue
            if cause == "displaced":
                left = msgspec.structs.replace(found.memory, closed_by="")
                ended = msgspec.structs.replace(found, memory=left, ends=left.valid_until)
                self.put(ended, "superseded")
                continue
            if group_of(found.memory) not in names:  # superseded by hand
                self.settle([found], self._group(found.memory))
                continue
            conflicting = {kept.memory.id: kept for kept in group if kept.memory.id != found.memory.id}
            next_one = self.get(memory.closed_by) if memory.closed_by else None
            if next_one is not None and group_of(next_one.memory) in names:
                conflicting.setdefault(next_one.memory.id, next_one)
            self.settle([found], sorted(conflicting.values(), key=by_begin))

    def _without(self, kept: StoredMemory, left: Sequence[MemorySource]) -> None:
        """Keep a memory with its other sources: it begins at their statements, without history of the erased ones."""
        memory = kept.memory
        begin, history = memory.valid_from, memory.history
        gone = {each.said_at for each in memory.sources} - {each.said_at for each in left}
        heard = [each.said_at for each in left if each.by == "rules" and is_valid(memory, each.said_at)]
        if begin in gone and heard:
            begin = min(heard)
            history = [past for past in history if past.valid_from != memory.valid_from]
        shortened = msgspec.structs.replace(
            memory,
            sources=list(left),
            mentions=max(len(left), memory.mentions - (len(memory.sources) - len(left))),
            valid_from=begin,
            history=history,
        )
        self._replace(kept, msgspec.structs.replace(kept, memory=shortened), "erased", self._group(memory))


class LongTerm(Edits, Forgetting):
    """Long-term memories of a project, changed in place (arguments as of `MemoryChanges`)."""

    displace = operation(Forgetting.let_weakest_go)

    def refusal(self, new: kept_memories.New) -> tuple[CommandOutcome, str] | None:
        """Outcome and reason if a memory is refused; None if it can be stored."""
        policy = self.policy
        if not new.content.strip():
            return "invalid", "content is empty"
        if len(new.content) > policy.content_chars:
            return "too_long", f"content has {len(new.content)} characters, at most {policy.content_chars} are kept"
        if new.source.by == "hand" and len(new.tags) > policy.tags:
            return "too_many", f"{len(new.tags)} tags, at most {policy.tags} are kept"
        if new.valid_until is not None and new.valid_until <= new.valid_from:
            return "invalid", "valid_until must be later than valid_from"
        return None

    @operation
    def add(self, new: kept_memories.New) -> tuple[str, CommandOutcome]:
        """Add a memory, or strengthen an existing one.

        Returns:
            Its id, empty if it was refused (`refusal`); `unchanged` if the same message is already a source.
        """
        refused = self.refusal(new)
        if refused is not None:
            return "", refused[0]
        known = self.same(new)
        again = next((kept for kept in known if _said_by(kept.memory, new.source)), None)
        if again is not None:
            return again.memory.id, "unchanged"
        within = next((kept for kept in known if is_valid(kept.memory, new.valid_from)), None)
        kept = self._place(new) if within is None else self._strengthen(within, new, self._group(within.memory))
        return kept.memory.id, "done"

    def knows(self, new: kept_memories.New) -> bool:
        """Whether a memory of any time has this content."""
        return bool(self.same(new))

    @operation
    def delete(self, memory_id: str, cause: ItemCause) -> bool:
        """Remove a memory; False if it does not exist. With `displaced`, what it superseded stays ended."""
        kept = self.get(memory_id)
        if kept is not None:
            self.drop(kept, cause)
        return kept is not None

    @operation
    def accessed(self, memory_id: str, count: int, at: datetime) -> None:
        """Record `count` retrievals of a memory (project memory, Access Recording); unknown ids are ignored."""
        kept = self.get(memory_id)
        if kept is not None:
            memory = kept_memories.read_again(kept.memory, count, at)
            memory = msgspec.structs.replace(memory, decay_factor=kept_memories.decay_at(memory, at, self.policy))
            self.put(msgspec.structs.replace(kept, memory=memory), "accessed")

    @operation
    def decayed(self, kept: StoredMemory, factor: float, *, archived: bool) -> None:
        """Set the decay factor of a consolidation, and archive the memory or not."""
        memory = msgspec.structs.replace(kept.memory, decay_factor=factor, archived=archived)
        cause: ItemCause = "archived" if archived and not kept.memory.archived else "decayed"
        self.put(msgspec.structs.replace(kept, memory=memory), cause)

    def _strengthen(self, kept: StoredMemory, new: kept_memories.New, group: Sequence[StoredMemory]) -> StoredMemory:
        """Strengthen a valid memory by a repeated statement."""
        policy, memory = self.policy, kept.memory
        later = max(self.now, memory.last_accessed_at)
        importance = max(min(1.0, memory.importance + policy.mention_gain), new.importance or 0.0)
        if importance != memory.importance:
            memory = self.revised(memory, importance=importance)
        stronger = msgspec.structs.replace(
            memory,
            mentions=memory.mentions + 1,
            confidence=min(1.0, 1 - (1 - memory.confidence) * (1 - new.confidence)),
            sources=kept_memories.bounded_sources([*memory.sources, new.source], policy.sources),
            tags=list(dict.fromkeys([*memory.tags, *new.tags]))[: policy.tags],
            category=memory.category or new.category,
            subject=memory.subject or new.subject,
            archived=False,
            updated_at=max(self.now, memory.updated_at),
            decay_factor=kept_memories.decay_at(memory, later, policy),
        )
        ends = new.valid_until if new.valid_until is not None else kept.ends
        return self._replace(kept, msgspec.structs.replace(kept, memory=stronger, ends=ends), "said_again", group)

    def _place(self, new: kept_memories.New) -> StoredMemory:
        """Add a statement without a valid equal memory: as a new memory, or as an earlier start of a later one."""
        draft = self._draft(new)
        at = new.valid_from
        group = self._split(draft)
        next_conflict = min((each.memory.valid_from for each in group if supersedes(each.memory, draft)), default=None)
        later = next((kept for kept in self.same(new) if kept.memory.valid_from > at), None)
        if (
            later is not None
            and (next_conflict is None or later.memory.valid_from <= next_conflict)
            and (new.valid_until is None or new.valid_until >= later.memory.valid_from)
            and self.may_begin(later, at)
        ):
            earlier = self.revised(later.memory, valid_from=at)
            kept = self.put(msgspec.structs.replace(later, memory=earlier), "said_again")
            return self._strengthen(kept, new, [each for each in group if each.memory.id != kept.memory.id])
        group = self._make_room(draft.id, group)
        kept = StoredMemory(memory=draft, slot=self.memories.free_slot(), ends=new.valid_until)
        self.put(kept, "created")
        self.enlist(kept)
        self.settle_group(draft.id, group)
        self.relate_new(self.get(draft.id) or kept)
        return self.get(draft.id) or kept

    def _split(self, draft: ProjectMemory) -> list[StoredMemory]:
        """The group of a new memory, including both halves of a memory that it splits."""
        whole = self._group(draft)
        group = self.split(whole, draft)
        known = {kept.memory.id for kept in whole}
        for half in [kept for kept in group if kept.memory.id not in known]:
            self.enlist(half)
            group = self._make_room(half.memory.id, group, more=0)
        return group

    def _draft(self, new: kept_memories.New) -> ProjectMemory:
        whose = kept_memories.holder_of(new.type, new.source.user_id)
        importance = self.policy.importance.of(new.type) if new.importance is None else new.importance
        return ProjectMemory(
            id=self.free_id(new.valid_from, new.type, new.content, whose),
            **same_fields(new, ProjectMemory, "tags", "importance"),
            tags=list(dict.fromkeys(new.tags))[: self.policy.tags],
            importance=importance,
            recorded_at=self.now,
            created_at=self.now,
            updated_at=self.now,
            sources=[new.source],
            last_accessed_at=self.now,
            tokens=estimate_tokens(new.content),
        )

    def _make_room(self, memory_id: str, group: list[StoredMemory], more: int = 1) -> list[StoredMemory]:
        """Remove the weakest memories until there is space, shard by shard, beginning with the shard of the new one.

        Args:
            memory_id: Id of the new memory.
            group: Memories that may be removed, too.
            more: Number of memories still to add.

        Returns:
            The remaining memories of the group.
        """
        first = shard_of(memory_id.rpartition("-")[2])
        for shard in range(first, first + SHARDS):
            if self.memories.count + more <= self.policy.most:
                break
            self.let_weakest_go(shard % SHARDS)
        return [kept for kept in group if self.get(kept.memory.id) is not None]


def _said_by(memory: ProjectMemory, source: MemorySource) -> bool:
    """Whether this message is among its sources; memories by hand have no message."""
    named = (source.conversation_id, source.turn)
    return bool(source.conversation_id) and any((each.conversation_id, each.turn) == named for each in memory.sources)
