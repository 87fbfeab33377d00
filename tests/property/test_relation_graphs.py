"""What holds for every graph of memories: it agrees with networkx, and with itself built anew."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import networkx as nx  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from models.events.project_items import ProjectMemory
from models.retrieval.relations import Graph, dependents, neighbours, path
from tests.support.project_found import episode, vertex

NAMES = "abcdef"
EDGES = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.sampled_from(("depends_on", "related_to")),
        st.sampled_from((0.25, 0.5, 1.0)),
    ),
    max_size=10,
    unique_by=lambda edge: edge[:3],
)
Edges = list[tuple[str, str, str, float]]


def memory(name: str, edges: Edges) -> ProjectMemory:
    """A memory with those of the edges that go out from it."""
    return vertex(name, [(target, kind, strength) for source, target, kind, strength in edges if source == name])


def graphs(edges: Edges) -> tuple[Graph, nx.MultiDiGraph[str]]:
    """Ours and theirs, without edges to itself."""
    edges = [edge for edge in edges if edge[0] != edge[1]]
    theirs: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    theirs.add_nodes_from(NAMES)
    for source, target, kind, strength in edges:
        theirs.add_edge(source, target, type=kind, strength=strength)
    return Graph(memory(name, edges) for name in NAMES), theirs


@given(EDGES, st.integers(0, 4))
def test_neighbours_are_those_of_networkx(edges: Edges, depth: int) -> None:
    """With their distance, and the strongest of the shortest ways."""
    graph, theirs = graphs(edges)
    plain = nx.MultiGraph(list(theirs.edges(data=True)))
    plain.add_nodes_from(NAMES)
    lengths = dict(nx.single_source_shortest_path_length(plain, "a", cutoff=depth))
    strongest = {
        far: max(
            prod(max(each["strength"] for each in plain[one][other].values()) for one, other in pairwise(way))
            for way in nx.all_shortest_paths(plain, "a", far)
        )
        for far in lengths
    }
    found = neighbours(graph, "a", depth)

    assert {far: (lengths[far], strongest[far]) for far in lengths if far != "a"} == {
        each.id: (each.distance, each.path_strength) for each in found
    }


@given(EDGES)
def test_paths_and_dependents_are_those_of_networkx(edges: Edges) -> None:
    """As long as the shortest, each edge joined to the last; and who can reach it by what it depends on."""
    graph, theirs = graphs(edges)
    plain = nx.Graph(theirs)
    way = path(graph, "a", "b")

    assert (way is not None) == nx.has_path(plain, "a", "b")
    if way is not None:
        assert nx.shortest_path_length(plain, "a", "b") == len(way)
        at = "a"
        for edge in way:
            assert at in {edge.source, edge.target}
            at = edge.target if edge.source == at else edge.source
        assert at == "b"
    needs = nx.DiGraph(
        (source, target) for source, target, data in theirs.edges(data=True) if data["type"] == "depends_on"
    )
    needs.add_nodes_from(NAMES)

    assert nx.ancestors(needs, "a") == {each.id for each in dependents(graph, "a")}


@given(EDGES, EDGES, st.permutations(NAMES), st.sets(st.sampled_from(NAMES)))
def test_a_graph_that_was_changed_is_one_built_anew(
    before: Edges, after: Edges, order: list[str], gone: set[str]
) -> None:
    """Whatever came, changed and went before, and in what order."""
    changed, _ = graphs(before)
    anew = Graph()
    for name in order:
        changed.put(memory(name, after))
    for name in gone:
        changed.drop(name)
    for name in NAMES:
        if name not in gone:
            anew.put(memory(name, after))

    assert [anew.edges(name) for name in NAMES] == [changed.edges(name) for name in NAMES]


def test_linked_memories_are_part_of_their_episode() -> None:
    """An episode brings memories together."""
    told_of = episode(1, "t", linked=("a", "b"))
    graph = Graph([vertex("a"), vertex("b"), told_of])

    assert [("e-1", 1), ("b", 2)] == [(each.id, each.distance) for each in neighbours(graph, "a", 2)]

    graph.put(replace(told_of, linked_memories=["a"]))

    assert ["e-1"] == [each.id for each in neighbours(graph, "a", 2)]
