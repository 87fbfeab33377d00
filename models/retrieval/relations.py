"""The graph of a project's memories (Relationship Graphs): neighbours, paths, and what depends on what. Pure.

Relationships are directed; cycles end a walk. An episode's linked memories are `part_of` it. An edge to something that
is not there (yet) is kept, and not walked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, Literal

from msgspec import Struct

from models.events.project_items import DEPENDS_ON, ProjectEpisode, ProjectMemory

PART_OF: Final = "part_of"
_MOST_STEPS: Final = 6
Direction = Literal["out", "in", "both"]


class RelationshipEdge(Struct, frozen=True, order=True, gc=False):
    """A relationship."""

    source: str
    target: str
    type: str
    strength: float


class Neighbour(Struct, frozen=True, gc=False):
    """What a walk came to."""

    id: str
    distance: int
    """Edges on the shortest way."""
    path_strength: float
    """Product of the strengths along the strongest of the shortest ways, 0-1."""
    type: str
    """Of the last edge on it."""


class Graph:
    """Memories and episodes with their edges, kept as they come, change and go."""

    def __init__(self, items: Iterable[ProjectMemory | ProjectEpisode] = ()) -> None:
        self._edges: dict[str, tuple[RelationshipEdge, ...]] = {}
        self._out: dict[str, set[RelationshipEdge]] = {}
        self._in: dict[str, set[RelationshipEdge]] = {}
        for item in items:
            self.put(item)

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._edges

    def __len__(self) -> int:
        return len(self._edges)

    def put(self, item: ProjectMemory | ProjectEpisode) -> None:
        """Take a memory or an episode as it is now."""
        edges = tuple(_edges_of(item))
        if self._edges.get(item.id) == edges:
            return
        self.drop(item.id)
        self._edges[item.id] = edges
        for edge in edges:
            self._out.setdefault(edge.source, set()).add(edge)
            self._in.setdefault(edge.target, set()).add(edge)

    def drop(self, item_id: str) -> None:
        """Let go of an item and its own edges; unknown ones are none."""
        for edge in self._edges.pop(item_id, ()):
            _take(self._out, edge.source, edge)
            _take(self._in, edge.target, edge)

    def edges(
        self, item_id: str, types: Collection[str] | None = None, direction: Direction = "both"
    ) -> list[RelationshipEdge]:
        """Edges of an item whose other end is there, in order."""
        if item_id not in self._edges:
            return []
        found = set(self._out.get(item_id, ()) if direction != "in" else ())
        found |= self._in.get(item_id, set()) if direction != "out" else set()
        return sorted(
            edge
            for edge in found
            if (types is None or edge.type in types) and edge.source in self._edges and edge.target in self._edges
        )


def neighbours(
    graph: Graph, item_id: str, depth: int, types: Collection[str] | None = None, direction: Direction = "both"
) -> list[Neighbour]:
    """What is at most `depth` edges away, without the item itself; the nearest first, then the strongest."""
    found: dict[str, Neighbour] = {}
    level = {item_id: 1.0}
    for distance in range(1, depth + 1):
        following: dict[str, Neighbour] = {}
        for near, strength in level.items():
            for edge in graph.edges(near, types, direction):
                far = edge.target if edge.source == near else edge.source
                known = following.get(far)
                reached = strength * edge.strength
                if far == item_id or far in found or (known is not None and known.path_strength >= reached):
                    continue
                following[far] = Neighbour(far, distance, reached, edge.type)
        if not following:
            break
        found |= following
        level = {far: each.path_strength for far, each in sorted(following.items())}
    return sorted(found.values(), key=lambda each: (each.distance, -each.path_strength, each.id))


def path(graph: Graph, first: str, last: str) -> list[RelationshipEdge] | None:
    """A shortest way between two items along edges of any direction, None if none has at most `_MOST_STEPS`."""
    if first not in graph or last not in graph:
        return None
    came_by: dict[str, tuple[str, RelationshipEdge] | None] = {first: None}
    level = [first]
    for _ in range(_MOST_STEPS):
        if last in came_by:
            break
        following: list[str] = []
        for near in level:
            for edge in graph.edges(near):
                far = edge.target if edge.source == near else edge.source
                if far not in came_by:
                    came_by[far] = (near, edge)
                    following.append(far)
        level = sorted(following)
    if last not in came_by:
        return None
    way: list[RelationshipEdge] = []
    step = came_by[last]
    while step is not None:
        way.append(step[1])
        step = came_by[step[0]]
    return way[::-1]


def dependents(graph: Graph, item_id: str) -> list[Neighbour]:
    """What depends on an item, directly or by way of others."""
    return neighbours(graph, item_id, len(graph), (DEPENDS_ON,), "in")


def _edges_of(item: ProjectMemory | ProjectEpisode) -> Iterator[RelationshipEdge]:
    if isinstance(item, ProjectMemory):
        yield from (RelationshipEdge(item.id, each.target_id, each.type, each.strength) for each in item.relationships)
    else:
        yield from (RelationshipEdge(memory_id, item.id, PART_OF, 1.0) for memory_id in item.linked_memories)


def _take(edges: dict[str, set[RelationshipEdge]], item_id: str, edge: RelationshipEdge) -> None:
    edges[item_id].discard(edge)
    if not edges[item_id]:
        del edges[item_id]
