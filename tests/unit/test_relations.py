"""The graph of a project's memories."""

from __future__ import annotations

import msgspec

from models.retrieval.relations import Graph, neighbours
from tests.support.project_found import episode, vertex


def test_linked_memories_are_part_of_their_episode() -> None:
    """An episode brings memories together."""
    told_of = episode(1, "t", linked=("a", "b"))
    graph = Graph([vertex("a"), vertex("b"), told_of])

    assert [("e-1", 1), ("b", 2)] == [(each.id, each.distance) for each in neighbours(graph, "a", 2)]

    graph.put(msgspec.structs.replace(told_of, linked_memories=["a"]))

    assert ["e-1"] == [each.id for each in neighbours(graph, "a", 2)]
