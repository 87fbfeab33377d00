"""Secondary indexes of a project's memories: by content, by subject and by tag. Lists of ids, under names.

| name | lists |
|---|---|
| `decision/…/<subject>` (`intervals.group_of`) | memories of a type and subject; of a preference also of a user |
| `#<tag>` | the latest memories with a tag |
| `=<suffix>` | memories whose content was edited: their id says what they said first |
| `><id>` | imported memories with a relationship to one that is not here yet |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import msgspec

from models.events.project import ItemCause
from models.events.project_items import CONTRADICTS, DEPENDS_ON, RELATED_TO, SUPERSEDES, MemoryType, ProjectMemory
from models.project.intervals import Intervals, by_begin, contradict, group_named, supersedes, tag_overlap
from models.project.kept_memories import New, canonical, holder, holder_of
from models.project.shards import StoredMemory

_Method = TypeVar("_Method", bound=Callable[..., Any])
_LATEST_OF_A_TAG = 2
"""Times the relationships that a memory may get by itself."""


class IndexedMemories(Intervals):
    """Memories that are being changed, with their edges, intervals and lists."""

    def enlist(self, kept: StoredMemory) -> None:
        """List a memory wherever it is looked for."""
        self.list_in_group(kept)
        for tag in kept.memory.tags:
            self.listed(f"#{tag}", kept, _LATEST_OF_A_TAG * self.policy.related)
        alias = self._alias(kept.memory)
        if alias:
            self.listed(alias, kept, self.policy.rivals)
        for edge in kept.waiting:
            self.listed(f">{edge.target_id}", kept, self.policy.relationships)

    def delist(self, kept: StoredMemory) -> None:
        """Take it from all lists."""
        self.unlist_from_group(kept.memory)
        names = [f"#{tag}" for tag in kept.memory.tags] + [f">{edge.target_id}" for edge in kept.waiting]
        for name in [*names, alias] if (alias := self._alias(kept.memory)) else names:
            self.unlisted(name, kept.memory.id)

    def same(self, new: New | ProjectMemory) -> list[StoredMemory]:
        """Memories of the same type, content and holder, oldest first; an equal suffix alone may be chance."""
        whose = holder(new) if isinstance(new, ProjectMemory) else holder_of(new.type, new.source.user_id)
        suffix, content = self.suffix(new.type, new.content, whose), canonical(new.content)
        edited = (self.get(each) for each in self.memories.subject(f"={suffix}"))
        alike = {kept.memory.id: kept for kept in (*self.memories.alike(suffix), *edited) if kept is not None}
        found = [
            kept
            for kept in alike.values()
            if (kept.memory.type, canonical(kept.memory.content), holder(kept.memory)) == (new.type, content, whose)
        ]
        return sorted(found, key=by_begin)

    def relate_new(self, kept: StoredMemory) -> None:
        """Mark what a memory contradicts, from the newer to the older, and relate it to what has most of its tags."""
        memory, most = kept.memory, self.policy.related
        tried = list(self._beside(memory))
        contradicted = [other for other in tried if not _succeed(memory, other) and contradict(memory, other)]
        for other in contradicted[:most]:
            newer, older = sorted((memory, other), key=lambda each: (each.valid_from, each.id), reverse=True)
            self.link(newer.id, older.id, CONTRADICTS, 1.0)
        rated = [(tag_overlap(memory, other), other.id) for other in tried if other not in contradicted]
        alike = [each for each in rated if each[0] >= self.policy.related_overlap and each[0] > 0]
        for overlap, other_id in sorted(alike, key=lambda each: (-each[0], each[1]))[:most]:
            self.link(memory.id, other_id, RELATED_TO, overlap)

    def forget_contradictions(self, memory_id: str) -> None:
        """Take back what was marked by itself, as the memory says something else now."""
        kept = self.get(memory_id)
        if kept is None:
            return
        ways = [(memory_id, edge) for edge in kept.memory.relationships if edge.type == CONTRADICTS]
        ways += [(source.memory.id, edge) for source, edge in self.incoming(kept, CONTRADICTS)]
        for source_id, edge in ways:
            if edge.origin == "rules":
                self.unlink(source_id, edge.target_id, CONTRADICTS)

    def join_waiting(self, memory_id: str) -> None:
        """Make the relationships that waited for a memory."""
        name = f">{memory_id}"
        for source_id in self.memories.subject(name):
            source = self.get(source_id)
            if source is None:
                continue
            ready = [edge for edge in source.waiting if edge.target_id == memory_id]
            left = tuple(edge for edge in source.waiting if edge.target_id != memory_id)
            self.put(msgspec.structs.replace(source, waiting=left), None)
            for edge in ready:
                if not self.closes_a_cycle(source_id, memory_id, edge.type):
                    self.make(source_id, edge)
        self.memories.set_subject(name, [])

    def closes_a_cycle(self, source_id: str, target_id: str, name: str) -> list[str]:
        """The cycle that an edge would close, from its source back to it; empty where it closes none, or may."""
        if name not in {DEPENDS_ON, SUPERSEDES}:
            return []
        back = self.way(target_id, source_id, name)
        return [source_id, *back] if back else []

    def _beside(self, memory: ProjectMemory) -> Iterator[ProjectMemory]:
        """Memories of its subject, then with a tag of it, the latest of each first."""
        names = [group_named(each, memory.subject, holder_of(each, _user(memory))) for each in MemoryType]
        seen = {memory.id}
        for name in [*(names if memory.subject else []), *(f"#{tag}" for tag in memory.tags)]:
            for memory_id in reversed(self.memories.subject(name)):
                if len(seen) > self.policy.rivals:
                    return
                kept = None if memory_id in seen else self.get(memory_id)
                if kept is not None:
                    seen.add(memory_id)
                    yield kept.memory

    def _alias(self, memory: ProjectMemory) -> str:
        suffix = self.suffix(memory.type, memory.content, holder(memory))
        return "" if memory.id.endswith(f"-{suffix}") else f"={suffix}"

    def _group(self, memory: ProjectMemory) -> list[StoredMemory]:
        """Memories of its group, also those that are listed no longer, back to its beginning."""
        return self.group(memory, back_to=memory.valid_from)

    def _replace(
        self, kept: StoredMemory, now: StoredMemory, cause: ItemCause, group: Sequence[StoredMemory]
    ) -> StoredMemory:
        """Put a memory in the place of what it was, in all lists, and settle it and its group; gives what it became."""
        self.delist(kept)
        self.put(now, cause)
        self.enlist(now)
        self.settle_group(now.memory.id, group)
        return self.get(now.memory.id) or now


def operation(method: _Method) -> _Method:
    """A change as a whole: when it is done, what changed is told."""

    @wraps(method)
    def told(self: IndexedMemories, *args: Any, **named: Any) -> Any:
        result = method(self, *args, **named)
        self.emit()
        return result

    return cast("_Method", told)


def _user(memory: ProjectMemory) -> str:
    return memory.sources[0].user_id if memory.sources else ""


def _succeed(one: ProjectMemory, other: ProjectMemory) -> bool:
    """Whether one supersedes the other: then it does not contradict it."""
    same = one.subject and (one.subject, holder(one)) == (other.subject, holder(other))
    return bool(same) and (supersedes(one, other) or supersedes(other, one))
