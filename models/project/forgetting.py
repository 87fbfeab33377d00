"""Cascade of removed long-term memories onto the others of a project: deleted, displaced, or erased with a session."""

from collections.abc import Callable, Sequence

import msgspec

from models.events.project import ItemCause
from models.events.project_items import SUPERSEDES, MemorySource
from models.project.intervals import by_begin, group_of, groups_of
from models.project.kept_memories import decay_at
from models.project.secondary_index import IndexedMemories, operation
from models.project.shards import StoredMemory
from models.project.store import SHARDS
from models.project.validity import is_valid


class Forgetting(IndexedMemories):
    """Removal of memories from those that are being changed."""

    @operation
    def erase_sessions(self, session_ids: frozenset[str], is_full: Callable[[], bool] = lambda: False) -> bool:
        """Let go of what only these said, and of their part in what others said too; False if `is_full` came first."""
        for shard in range(SHARDS):
            for memory_id in self._changes.memories.shard_ids(shard):
                kept = self._changes.get(memory_id)
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
        """Let go of a shard's weakest memory: of archived ones if there are, by importance × decay."""
        there = (self._changes.get(memory_id) for memory_id in self._changes.memories.shard_ids(shard))
        weakest = min((kept for kept in there if kept is not None), key=self._worth, default=None)
        if weakest is not None:
            self.drop(weakest, "displaced")
        return weakest

    def _worth(self, kept: StoredMemory) -> tuple[bool, float]:
        memory, changes = kept.memory, self._changes
        return not memory.archived, memory.importance * decay_at(memory, changes.now, changes.policy)

    def drop(self, kept: StoredMemory, cause: ItemCause) -> None:
        """Let go of a memory. What it had closed holds again until the next rival; if it is `displaced`, not."""
        memory = kept.memory
        group, names = self._group(memory), groups_of(memory)
        named = [edge.target_id for edge in memory.relationships if edge.type == SUPERSEDES]
        closed = [self._changes.get(each) for each in dict.fromkeys([*named, *(each.memory.id for each in group)])]
        self._index.delist(kept)
        self._edges.unlink_all(memory.id)
        self._changes.drop(kept, cause)
        for each in closed:
            found = None if each is None else self._changes.get(each.memory.id)
            if found is None or found.memory.closed_by != memory.id:
                continue
            if cause == "displaced":
                left = msgspec.structs.replace(found.memory, closed_by="")
                ended = msgspec.structs.replace(found, memory=left, ends=left.valid_until)
                self._changes.put(ended, "superseded")
                continue
            if group_of(found.memory) not in names:  # superseded by hand
                self._intervals.settle([found], self._group(found.memory))
                continue
            conflicting = {kept.memory.id: kept for kept in group if kept.memory.id != found.memory.id}
            next_one = self._changes.get(memory.closed_by) if memory.closed_by else None
            if next_one is not None and group_of(next_one.memory) in names:
                conflicting.setdefault(next_one.memory.id, next_one)
            self._intervals.settle([found], sorted(conflicting.values(), key=by_begin))

    def _without(self, kept: StoredMemory, left: Sequence[MemorySource]) -> None:
        """A memory that others said too: it begins when those said it, and nothing tells of the ones before."""
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
