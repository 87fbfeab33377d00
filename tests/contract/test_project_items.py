"""Items of projects, on Qdrant Edge and on the server's client: how they are found, and what is left of them."""

from datetime import timedelta

import pytest

from models.policy import Policy
from models.retrieval.relevance import RetrievalFilters, RetrievalQuery
from streams.index import project_memory
from streams.index.collections import PROJECT_ITEMS, PROJECTS
from streams.index.project_memory import ProjectMemories
from streams.ports import VectorStore
from tests.support.projects_indexed import EVERYTHING, NOW, PARTITION, changed, index, remembered, stands, view_of, went
from tests.support.users_indexed import MatterEmbedder

POLICY = Policy().projects
LATER = NOW.replace(hour=23)


@pytest.fixture
def projects(store: VectorStore) -> ProjectMemories:
    """Over the store, as the index role has it."""
    return ProjectMemories(store, MatterEmbedder(), POLICY)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (RetrievalQuery(text="boats"), ["memory 1"]),
        (RetrievalQuery(text="bread"), ["episode 1"]),
        (RetrievalQuery(text="bread", filters=RetrievalFilters(include_archived=True)), ["episode 1", "memory 2"]),
        (RetrievalQuery(text="bread", filters=RetrievalFilters(include_episodic=False)), []),
        (RetrievalQuery(text="violin"), []),
        (RetrievalQuery(text="violin", filters=RetrievalFilters(include_chunks=True)), ["chunk 1"]),
        (RetrievalQuery(text="boats", filters=RetrievalFilters(categories=["other"])), []),
        (RetrievalQuery(text="boats", top_k=1), ["memory 1"]),
    ],
)
async def test_items_are_found(projects: ProjectMemories, query: RetrievalQuery, expected: list[str]) -> None:
    """By words and meaning, within the query's filters; what nothing speaks for has no score."""
    await index(projects, *EVERYTHING, stands(3))
    found = await projects.find(await view_of(projects), query, LATER)

    assert expected == sorted(f"{each.kind} {int(each.id.split('-')[1])}" for each in found if each.score > 0.1)


@pytest.mark.behaviour("project-15")
async def test_filters_are_looked_for_beyond_the_best(
    projects: ProjectMemories, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many memories say it better than the one that the filter lets through."""
    monkeypatch.setattr(project_memory, "_FEWEST_CANDIDATES", 3)
    better = [changed(remembered(n), n, 1) for n in range(40)]
    wanted = changed(remembered(99, "Some boats, among many other things.", category="other"), 99, 1)
    await index(projects, *better, wanted, stands(1))
    query = RetrievalQuery(text="boats", filters=RetrievalFilters(categories=["other"]), top_k=3)
    found = await projects.find(await view_of(projects), query, LATER)

    assert [remembered(99).id] == [each.id for each in found]


@pytest.mark.parametrize(("text", "context", "expected"), [("", "", 3), ("What was it?", "", 3), ("", "boats", 1)])
async def test_without_a_word_what_is_important_is_found(
    projects: ProjectMemories, text: str, context: str, expected: int
) -> None:
    """By the source's scores, unless the context has words; what came later was not known then, by meaning too."""
    important = changed(remembered(3, "Bread it is.", importance=1.0), 2, 1)
    await index(projects, changed(remembered(1), 0, 1), changed(remembered(2), 1, 1), important, stands(1))
    view, query = await view_of(projects), RetrievalQuery(text=text, context=context)
    found = await projects.find(view, query, LATER)

    assert remembered(expected).id == found[0].id
    assert bool(context) or found == view.retrieve(query, LATER)
    await index(projects, changed(remembered(60), 3, 2), stands(2))
    view, query = await view_of(projects), RetrievalQuery(text="boats", known_at=NOW + timedelta(minutes=30))
    known = {each.id for each in await projects.find(view, query, LATER)}
    assert [remembered(n).id in known for n in (1, 2, 60)] == [True, True, False]


async def test_the_standing_is_the_last_one(projects: ProjectMemories) -> None:
    """With what commands came to, and with the last event that the project knows."""
    await index(projects, stands(1), stands(1, app="b"), stands(2, project="a/web"))
    await index(projects, stands(7, memories=3))
    found = await projects.stats("a", "web")
    assert found is not None

    assert (found.revision, found.memories, found.source.partition, found.source.offset) == (7, 3, PARTITION, 7)
    assert stands().results == found.results
    assert [("a", "web"), ("a", "a/web"), ("b", "web")] == [
        (each.app_id, each.project_id) for each in await projects.projects(None, 10)
    ]
    assert ["web", "a/web"] == [each.project_id for each in await projects.projects("a", 10)]
    assert ["web"] == [each.project_id for each in await projects.projects("a", 1)]


async def test_what_went_names_nobody(projects: ProjectMemories, store: VectorStore) -> None:
    """Of a memory, and of how far a project is: no text, no session, no user."""
    await index(projects, changed(remembered(1), 0, 1))
    await index(projects, went(remembered(1), 0, 2), stands(2))
    pages = [(await store.page(name, "", 9))[0] for name in (PROJECT_ITEMS.name, PROJECTS.name)]
    told = "".join(str(point.payload) for page in pages for point in page)

    assert [1, 1] == [len(page) for page in pages]
    assert not any(word in told for word in ("boats", '"s1"', '"u"'))
