"""Relationships of a project's memories, kept at both ends, so that none is left when one end goes.

The memory an edge goes out from has it (`ProjectMemory.relationships`); the one it leads to knows who refers to it
(`StoredMemory.incoming`). Each end has at most `long_term.relationships`; where one is full, the weakest that was made
automatically (`related_to`, then `contradicts`) makes room for one by hand or for one that supersedes.
"""

from collections.abc import Iterator, Sequence

import msgspec

from models.events.project_items import CONTRADICTS, RELATED_TO, Origin, ProjectMemory, Relationship
from models.project.kept_memories import MemoryChanges
from models.project.shards import StoredMemory

_MAKE_ROOM = (RELATED_TO, CONTRADICTS)


def relationship(memory: ProjectMemory, target_id: str, name: str) -> Relationship | None:
    """The edge of a name from a memory to another."""
    return next((each for each in memory.relationships if (each.target_id, each.type) == (target_id, name)), None)


class Edges(MemoryChanges):
    """Edges among memories that are being changed."""

    def make(self, source_id: str, edge: Relationship) -> bool:
        """Make an edge, or give it another strength; False if an end is missing, the same, or full."""
        source, target = self.get(source_id), self.get(edge.target_id)
        if source is None or target is None or source_id == edge.target_id:
            return False
        known = relationship(source.memory, edge.target_id, edge.type)
        if known is not None:
            edge = msgspec.structs.replace(edge, created_at=known.created_at)
            self._put_edges(source, [edge if each is known else each for each in source.memory.relationships])
            return True
        if not (self._room_out(source, edge) and self._room_in(target, edge, source_id)):
            return False
        source = self.get(source_id) or source
        self._put_edges(source, [*source.memory.relationships, edge])
        self._refer(edge.target_id, source_id, refers=True)
        return True

    def link(self, source_id: str, target_id: str, name: str, strength: float, origin: Origin = "rules") -> bool:
        """Make an edge as of now (`make`)."""
        now = self.now
        edge = Relationship(target_id=target_id, type=name, strength=strength, created_at=now, origin=origin)
        return self.make(source_id, edge)

    def unlink(self, source_id: str, target_id: str, name: str) -> bool:
        """Take an edge back; False if there is none."""
        source = self.get(source_id)
        known = None if source is None else relationship(source.memory, target_id, name)
        if source is None or known is None:
            return False
        left = [each for each in source.memory.relationships if each is not known]
        self._put_edges(source, left)
        if all(each.target_id != target_id for each in left):
            self._refer(target_id, source_id, refers=False)
        return True

    def unlink_all(self, memory_id: str) -> None:
        """Take back every edge from and to a memory that goes."""
        kept = self.get(memory_id)
        if kept is None:
            return
        for edge in kept.memory.relationships:
            self._refer(edge.target_id, memory_id, refers=False)
        for source_id in kept.incoming:
            source = self.get(source_id)
            if source is not None:
                self._put_edges(source, [each for each in source.memory.relationships if each.target_id != memory_id])

    def incoming(self, kept: StoredMemory, name: str) -> Iterator[tuple[StoredMemory, Relationship]]:
        """Edges of a name that lead to a memory, and where from."""
        for source_id in kept.incoming:
            source = self.get(source_id)
            edge = None if source is None else relationship(source.memory, kept.memory.id, name)
            if source is not None and edge is not None:
                yield source, edge

    def way(self, first: str, last: str, name: str) -> list[str]:
        """Ids along edges of a name from one memory to another, both of them inside; empty if there is no way."""
        came_from, waiting = {first: ""}, [first]
        for memory_id in waiting:
            if memory_id == last:
                break
            kept = self.get(memory_id)
            for edge in () if kept is None else kept.memory.relationships:
                if edge.type == name and edge.target_id not in came_from:
                    came_from[edge.target_id] = memory_id
                    waiting.append(edge.target_id)
        way = [last] if last in came_from else []
        while way and came_from[way[-1]]:
            way.append(came_from[way[-1]])
        return way[::-1]

    def _put_edges(self, source: StoredMemory, relationships: Sequence[Relationship]) -> None:
        in_order = sorted(relationships, key=lambda each: (each.created_at, each.target_id, each.type))
        memory = msgspec.structs.replace(source.memory, relationships=in_order)
        self.put(msgspec.structs.replace(source, memory=memory), "related")

    def _refer(self, target_id: str, source_id: str, *, refers: bool) -> None:
        """Note at a memory whether another refers to it."""
        target = self.get(target_id)
        if target is not None and refers != (source_id in target.incoming):
            others = tuple(each for each in target.incoming if each != source_id)
            incoming = (*others, source_id) if refers else others
            self.put(msgspec.structs.replace(target, incoming=incoming), None)

    def _room_out(self, source: StoredMemory, edge: Relationship) -> bool:
        if len(source.memory.relationships) + len(source.waiting) < self.policy.relationships:
            return True
        return self._displace([(source.memory.id, each) for each in source.memory.relationships], edge)

    def _room_in(self, target: StoredMemory, edge: Relationship, source_id: str) -> bool:
        if source_id in target.incoming or len(target.incoming) < self.policy.relationships:
            return True
        edges = [(kept.memory.id, each) for name in _MAKE_ROOM for kept, each in self.incoming(target, name)]
        # Only the last edge of a source frees its place.
        alone = [(by, each) for by, each in edges if self._edges_between(by, target.memory.id) == 1]
        return self._displace(alone, edge)

    def _edges_between(self, source_id: str, target_id: str) -> int:
        source = self.get(source_id)
        return 0 if source is None else sum(each.target_id == target_id for each in source.memory.relationships)

    def _displace(self, edges: Sequence[tuple[str, Relationship]], edge: Relationship) -> bool:
        if edge.origin == "rules" and edge.type in _MAKE_ROOM:
            return False
        automatic = [(by, each) for by, each in edges if each.origin == "rules" and each.type in _MAKE_ROOM]
        if not automatic:
            return False
        by, weakest = min(automatic, key=lambda each: (_MAKE_ROOM.index(each[1].type), each[1].strength, each[0]))
        return self.unlink(by, weakest.target_id, weakest.type)
