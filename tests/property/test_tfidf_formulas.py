"""TF-IDF is the source formulas over what is there; graphs of memories agree with networkx."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from math import prod

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from sklearn.feature_extraction.text import TfidfVectorizer

from models.events.project_items import ProjectMemory
from models.retrieval.relations import Graph, dependents, neighbours, path
from models.retrieval.tfidf import TfIdf
from tests.support.project_found import episode, vertex

TERMS = st.lists(st.integers(0, 12), max_size=8)
CHANGES = st.lists(st.tuples(st.integers(0, 9), st.none() | TERMS), max_size=30)
"""A document's number with its terms, or that it goes."""


def plain(documents: dict[int, list[int]], query: list[int]) -> dict[int, tuple[float, float]]:
    """Similarity and share of terms by the formulas (project memory), one after the other."""
    having = Counter(term for terms in documents.values() for term in set(terms))

    def vector(terms: list[int]) -> dict[int, float]:
        counts = Counter(terms)
        most = max(counts.values(), default=1)
        return {
            term: count / most * math.log(len(documents) / having[term])
            for term, count in counts.items()
            if having[term]
        }

    def cosine(left: dict[int, float], right: dict[int, float]) -> float:
        product = sum(value * right.get(term, 0.0) for term, value in left.items())
        norms = math.hypot(*left.values()) * math.hypot(*right.values())
        return product / norms if norms else 0.0

    asked = vector(query)
    return {
        number: (cosine(asked, vector(terms)), len(set(query) & set(terms)) / max(1, len(set(query))))
        for number, terms in documents.items()
    }


def changed(index: TfIdf, changes: list[tuple[int, list[int] | None]]) -> dict[int, list[int]]:
    """Make the changes; what is there then."""
    documents: dict[int, list[int]] = {}
    for number, terms in changes:
        if terms is None:
            index.drop(number)
            documents.pop(number, None)
        else:
            index.put(number, terms)
            documents[number] = terms
    return documents


@pytest.mark.behaviour("project-14")
@given(CHANGES, TERMS, CHANGES)
def test_it_is_the_formulas_over_what_is_there(
    before: list[tuple[int, list[int] | None]], query: list[int], after: list[tuple[int, list[int] | None]]
) -> None:
    """Also when it was asked in between, and so holds norms and frequencies of then."""
    index = TfIdf()
    changed(index, before)
    index.match(query, 10)
    documents = changed(index, before + after)
    expected = plain(documents, query)

    match = index.match(query, 10)

    for number in range(10):
        similarity, share = expected.get(number, (0.0, 0.0))
        assert math.isclose(similarity, match.similarity[number], abs_tol=1e-9)
        assert math.isclose(share, match.share[number], abs_tol=1e-12)


@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=8), min_size=1, max_size=8), TERMS)
def test_it_is_scikit_learns_but_for_its_idf(documents: list[list[int]], query: list[int]) -> None:
    """Whose idf is one more, so that a term of every document counts; its plain counts have the same direction."""
    index = TfIdf()
    for number, terms in enumerate(documents):
        index.put(number, terms)
    vectorizer = TfidfVectorizer(analyzer=list, smooth_idf=False).fit(documents)
    vectorizer.idf_ = vectorizer.idf_ - 1

    expected = (vectorizer.transform(documents) @ vectorizer.transform([query]).T).toarray()  # of length 1: cosines

    assert np.allclose(expected[:, 0], index.match(query, len(documents)).similarity, atol=1e-9)


def test_what_comes_and_goes_leaves_nothing_behind() -> None:
    """A project that lives for years has as many entries and terms as it has memories, not as it ever had."""
    index = TfIdf()
    for number in range(20_000):
        index.put(number % 50, [number, number + 1, number + 2])

    assert index._used <= 3 * 50 + 2 * 1_024
    assert len(index._columns) <= index._used
    assert index.match([20_001], 50).share.tolist() == [0.0] * 49 + [1.0]


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


@pytest.mark.behaviour("project-24")
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
