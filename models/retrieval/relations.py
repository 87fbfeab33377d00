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

    def far(self, near: str) -> str:
        """Its other end."""
        return self.target if self.source == near else self.source


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
        self._at: dict[str, set[RelationshipEdge]] = {}
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
            for end in {edge.source, edge.target}:
                self._at.setdefault(end, set()).add(edge)

    def drop(self, item_id: str) -> None:
        """Let go of an item and its own edges; unknown ones are none."""
        for edge in self._edges.pop(item_id, ()):
            for end in {edge.source, edge.target}:
                self._at[end].discard(edge)
                if not self._at[end]:
                    del self._at[end]

    def edges(
        self, item_id: str, types: Collection[str] | None = None, direction: Direction = "both"
    ) -> list[RelationshipEdge]:
        """Edges of an item whose other end is there, in order."""
        ends = {"out": ("source",), "in": ("target",), "both": ("source", "target")}[direction]
        return sorted(
            edge
            for edge in (self._at.get(item_id, ()) if item_id in self._edges else ())
            if (types is None or edge.type in types)
            and edge.far(item_id) in self._edges
            and any(getattr(edge, end) == item_id for end in ends)
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
                far, reached = edge.far(near), strength * edge.strength
                known = following.get(far)
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
    away = {each.id: each.distance for each in neighbours(graph, first, _MOST_STEPS)} | {first: 0}
    if first not in graph or last not in away:
        return None
    way: list[RelationshipEdge] = []
    while last != first:
        near, edge = min((e.far(last), e) for e in graph.edges(last) if away.get(e.far(last)) == away[last] - 1)
        way.append(edge)
        last = near
    return way[::-1]


def dependents(graph: Graph, item_id: str) -> list[Neighbour]:
    """What depends on an item, directly or by way of others."""
    return neighbours(graph, item_id, len(graph), (DEPENDS_ON,), "in")


def _edges_of(item: ProjectMemory | ProjectEpisode) -> Iterator[RelationshipEdge]:
    if isinstance(item, ProjectMemory):
        yield from (RelationshipEdge(item.id, each.target_id, each.type, each.strength) for each in item.relationships)
    else:
        yield from (RelationshipEdge(memory_id, item.id, PART_OF, 1.0) for memory_id in item.linked_memories)
