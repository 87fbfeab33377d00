"""The graph of a project's memories."""

from __future__ import annotations

import msgspec
import pytest

from models.retrieval.relations import Graph, RelationshipEdge, neighbours, path
from tests.project_found import episode, vertex


def chain() -> Graph:
    """A → b → c → a, c → d, and e alone."""
    return Graph(
        [
            vertex("a", [("b", "depends_on", 0.5)]),
            vertex("b", [("c", "depends_on", 0.8)]),
            vertex("c", [("a", "related_to", 1.0), ("d", "depends_on", 1.0)]),
            vertex("d"),
            vertex("e"),
        ]
    )


def test_neighbours_by_depth_direction_and_name() -> None:
    """The nearest first, then the strongest; a cycle ends the walk."""
    graph = chain()

    def near(depth: int, *names: str, direction: str = "both") -> list[tuple[str, int, float, str]]:
        found = neighbours(graph, "a", depth, names or None, direction)  # type: ignore[arg-type]
        return [(each.id, each.distance, each.path_strength, each.type) for each in found]

    assert [("c", 1, 1.0, "related_to"), ("b", 1, 0.5, "depends_on")] == near(1)
    assert [("b", 1, 0.5, "depends_on"), ("c", 2, pytest.approx(0.4), "depends_on")] == near(2, direction="out")
    assert [("c", 1, 1.0, "related_to"), ("b", 2, 0.8, "depends_on")] == near(9, direction="in")
    assert ["b", "c", "d"] == [each[0] for each in near(9, "depends_on")]
    assert [] == near(0)
    assert [] == neighbours(graph, "nobody", 3)


def test_a_path_names_its_edges_as_they_are_directed() -> None:
    """The shortest, along edges of any direction, and not longer than asked."""
    graph = chain()
    expected = [RelationshipEdge("c", "a", "related_to", 1.0), RelationshipEdge("c", "d", "depends_on", 1.0)]

    assert expected == path(graph, "a", "d")
    assert None is path(graph, "a", "d", most=1)
    assert None is path(graph, "a", "e")
    assert [] == path(graph, "a", "a")


def test_linked_memories_are_part_of_their_episode() -> None:
    """An episode brings memories together."""
    told_of = episode(1, "t", linked=("a", "b"))
    graph = Graph([vertex("a"), vertex("b"), told_of])

    assert [("e-1", 1), ("b", 2)] == [(each.id, each.distance) for each in neighbours(graph, "a", 2)]

    graph.put(msgspec.structs.replace(told_of, linked_memories=["a"]))

    assert ["e-1"] == [each.id for each in neighbours(graph, "a", 2)]
