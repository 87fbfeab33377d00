"""Relevance by the source's weights, and every filter."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from models.events.project_items import MemorySource, MemoryType, ProjectMemory
from models.policy.project import LongTermPolicy, ProjectPolicy, RetrievalWeights
from models.retrieval.candidates import Candidates
from models.retrieval.relevance import Findable, Found, RetrievalFilters, RetrievalQuery, Scores
from tests.support.project_found import BEGIN, DAY, chunk, episode, memory

DECISION = memory(1, "We went with PostgreSQL for the orders.", kind=MemoryType.DECISION)
GOAL = memory(2, "Ship the checkout in May.", kind=MemoryType.GOAL)


def filled(*items: Findable, policy: ProjectPolicy | None = None) -> Candidates:
    """These can be found."""
    candidates = Candidates(policy or ProjectPolicy())
    for item in items:
        candidates.put(item)
    return candidates


def scores(candidates: Candidates, found: Found, text: str, context: str = "", **options: Any) -> Scores:
    """What one's relevance is made of."""
    at = options.pop("at", BEGIN)
    query = RetrievalQuery(text=text, context=context, **options)
    return candidates.scores(candidates.score(query, at), found)


def total(candidates: Candidates, number: int, **options: Any) -> float:
    """Relevance of a memory."""
    scored = candidates.score(RetrievalQuery(**options), BEGIN)
    best = candidates.best(scored, scored.total >= 0, threshold=0, top_k=100)
    return dict(best)["memory", f"m-{number:03}"]


def let_through(*items: Findable, at: Any = BEGIN, **options: Any) -> list[str]:
    """Ids of those that a query with these filters, or fields, lets through."""
    candidates = filled(*items)
    filters = {name: options.pop(name) for name in list(options) if name in RetrievalFilters.__struct_fields__}
    query = RetrievalQuery(text="", filters=RetrievalFilters(**filters), **options)
    allowed = candidates.allowed(query, at)
    return sorted(item.id for item in items if candidates.lets(allowed, _found(item)))


def said(item: ProjectMemory, *times: datetime) -> ProjectMemory:
    """The memory, said at these times and taken in at its own."""
    return replace(item, valid_from=times[0], sources=[MemorySource(said_at=each) for each in times])


def _found(item: Findable) -> Found:
    return {"m": "memory", "e": "episode", "k": "chunk"}[item.id[0]], item.id  # type: ignore[return-value]


@pytest.mark.behaviour("project-13")
def test_the_seeds_weights() -> None:
    """0.4 of the similarity, 0.3 of the terms, 0.2 of recency and 0.1 of importance, accesses nothing."""
    candidates = filled(replace(DECISION, access_count=3), GOAL)
    found = scores(candidates, ("memory", "m-001"), "PostgreSQL orders tomorrow", at=BEGIN + 30 * DAY)
    scored = candidates.score(RetrievalQuery(text="PostgreSQL orders tomorrow"), BEGIN + 30 * DAY)

    assert (found.keyword, found.recency, found.importance, found.access) == pytest.approx((2 / 3, 0.5, 0.5, 0.6))
    assert found.semantic > 0.5
    expected = 0.4 * found.semantic + 0.3 * found.keyword + 0.2 * found.recency + 0.1 * found.importance
    assert pytest.approx(expected) == scored.total[0]


def test_weights_of_the_query_stand_for_the_policys() -> None:
    """Divided by their sum: only their ratio counts."""
    weights = RetrievalWeights(semantic=0, keyword=0, recency=0, importance=3, access=1)
    candidates = filled(replace(DECISION, importance=0.8, access_count=10))

    assert total(candidates, 1, text="anything", weights=weights) == pytest.approx((3 * 0.8 + 1) / 4)


@pytest.mark.parametrize("part", [{"category": "orders"}, {"tags": ["orders"]}, {"subject": "orders"}])
def test_a_memory_is_found_by_its_category_tags_and_subject(part: dict[str, Any]) -> None:
    """As if it said them."""
    candidates = filled(replace(GOAL, **part), DECISION)

    assert scores(candidates, ("memory", "m-002"), "orders").keyword == 1


def test_recency_counts_from_the_last_time_that_it_was_said_or_accessed() -> None:
    """A time ahead of the clock is now."""
    accessed = replace(memory(1, "a fact"), last_accessed_at=BEGIN + 10 * DAY)
    again = said(memory(2, "a fact"), BEGIN, BEGIN + 20 * DAY)
    candidates = filled(accessed, again)

    assert scores(candidates, ("memory", "m-001"), "x", at=BEGIN + 40 * DAY).recency == 0.5
    assert scores(candidates, ("memory", "m-002"), "x", at=BEGIN + 50 * DAY).recency == 0.5
    assert scores(candidates, ("memory", "m-002"), "x", at=BEGIN).recency == 1


def test_what_is_filled_in_later_is_as_old_as_it_was_said() -> None:
    """Two years old: not recent, and found by the dates of then, as an episode of then is."""
    then, later = BEGIN - 730 * DAY, timedelta(hours=1)
    filled_in = said(memory(1, "a fact"), then, then + DAY)
    told_of = episode(1, "a fact", at=then)
    dates = {"date_from": then - later, "date_to": then + later}

    assert scores(filled(filled_in), ("memory", "m-001"), "x", at=then + 31 * DAY).recency == 0.5
    assert let_through(filled_in, told_of, **dates) == ["e-1", "m-001"]
    assert let_through(filled_in, told_of, date_from=BEGIN - later) == []


@pytest.mark.parametrize(
    ("boost", "most", "expected"), [(0.1, 0.5, 0.4), (0.5, 0.5, 1.0), (0.0, 0.5, 0.0), (0.0, 0.0, 0.0)]
)
def test_access_is_the_share_of_the_most_that_accesses_add(boost: float, most: float, expected: float) -> None:
    """Two of them; a policy without a boost knows no access."""
    policy = ProjectPolicy(long_term=LongTermPolicy(access_boost=boost, access_boost_most=most))
    candidates = filled(replace(DECISION, access_count=2), policy=policy)

    assert scores(candidates, ("memory", "m-001"), "x").access == pytest.approx(expected)


def test_the_context_lifts_and_never_lowers() -> None:
    """What has its words comes first, what has not keeps its score. A text without a term asks for its context."""
    one, other = memory(1, "The orders store is PostgreSQL."), memory(2, "The orders queue is Kafka.")
    candidates = filled(one, other, memory(3, "Ship it in May."))
    plain = [total(candidates, n, text="orders") for n in (1, 2)]
    lifted = [total(candidates, n, text="orders", context="about Kafka") for n in (1, 2)]

    assert lifted[0] == plain[0]
    assert lifted[1] > plain[1]
    assert scores(filled(DECISION, GOAL), ("memory", "m-001"), "What was it?", "PostgreSQL orders").keyword == 1


def test_episodes_and_chunks_have_scores_too() -> None:
    """Significance is an episode's importance, a chunk has none."""
    candidates = filled(episode(1, "Chose PostgreSQL"), chunk(1, "They spoke of PostgreSQL."))

    assert scores(candidates, ("episode", "e-1"), "postgresql") == Scores(0.0, 1.0, 1.0, 0.8, 0.0)
    assert scores(candidates, ("chunk", "k-1"), "postgresql") == Scores(0.0, 1.0, 1.0, 0.0, 0.0)


def test_the_threshold_is_inside() -> None:
    """Exactly as relevant as asked for is relevant enough."""
    candidates = filled(DECISION)
    scored = candidates.score(RetrievalQuery(text="PostgreSQL"), BEGIN)
    score = float(scored.total[0])

    assert len(candidates.best(scored, scored.total >= 0, threshold=score, top_k=3)) == 1
    assert candidates.best(scored, scored.total >= 0, threshold=score + 1e-9, top_k=3) == []


def test_what_went_is_not_found_and_its_place_is_taken() -> None:
    """Neither by words nor by labels."""
    candidates = filled(replace(DECISION, tags=["db"]), GOAL)
    candidates.drop(("memory", "m-001"))
    candidates.drop(("memory", "m-001"))
    candidates.put(memory(3, "Kafka it is."))
    tagged = RetrievalQuery(text="", filters=RetrievalFilters(tags=["db"]))

    assert [GOAL.id, "m-003"] == [item.id for item in candidates.held(BEGIN)]
    assert not candidates.allowed(tagged, BEGIN).any()
    assert scores(candidates, ("memory", "m-003"), "postgresql").keyword == 0


TYPED = (
    replace(memory(1, "a", kind=MemoryType.DECISION), category="db", tags=["x", "y"], importance=0.7),
    replace(memory(2, "b", kind=MemoryType.GOAL), category="ui", tags=["y"], importance=0.4),
    episode(1, "c"),
    chunk(1, "d"),
)


@pytest.mark.behaviour("project-15")
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ["e-1", "m-001", "m-002"]),
        ({"include_chunks": True}, ["e-1", "k-1", "m-001", "m-002"]),
        ({"include_episodic": False}, ["m-001", "m-002"]),
        ({"memory_types": [MemoryType.DECISION]}, ["m-001"]),
        ({"memory_types": [MemoryType.DECISION, MemoryType.GOAL], "include_chunks": True}, ["m-001", "m-002"]),
        ({"memory_types": [MemoryType.FACT]}, []),
        ({"categories": ["db", "none"]}, ["m-001"]),
        ({"tags": ["y"]}, ["m-001", "m-002"]),
        ({"tags": ["x", "none"], "categories": ["ui"]}, []),
        ({"min_importance": 0.7, "include_chunks": True}, ["e-1", "m-001"]),
        ({"min_importance": 0.0, "include_chunks": True}, ["e-1", "m-001", "m-002"]),
    ],
)
def test_filters(filters: dict[str, Any], expected: list[str]) -> None:
    """Everything given must hold; what has no such thing is left out."""
    assert let_through(*TYPED, **filters) == expected


def test_dates() -> None:
    """Both ends are inside; an episode counts as long as it went on."""
    long = replace(episode(1, "long"), ended_at=BEGIN + 9 * DAY)
    items = (memory(1, "first"), memory(2, "second", at=BEGIN + 5 * DAY), long)
    at = BEGIN + 10 * DAY

    assert let_through(*items, at=at, date_from=BEGIN + 5 * DAY) == ["e-1", "m-002"]
    assert let_through(*items, at=at, date_to=BEGIN) == ["e-1", "m-001"]
    assert let_through(*items, at=at, date_from=BEGIN + DAY, date_to=BEGIN + 2 * DAY) == ["e-1"]


def test_archived_ones_are_found_only_if_asked_for() -> None:
    """Put away by a consolidation: of the present, not of other times."""
    put_away = replace(DECISION, archived=True)

    assert let_through(put_away, GOAL) == ["m-002"]
    assert let_through(put_away, GOAL, include_archived=True) == ["m-001", "m-002"]
    assert let_through(put_away, GOAL, valid_at=BEGIN) == ["m-001", "m-002"]
    assert let_through(put_away, GOAL, known_at=BEGIN) == ["m-001", "m-002"]


def test_what_does_not_hold_is_found_only_at_its_time() -> None:
    """From its begin on, not at its end; an episode holds since it began."""
    held: ProjectMemory = replace(DECISION, valid_until=BEGIN + 2 * DAY, closed_by="m-002")
    later = replace(GOAL, valid_from=BEGIN + 2 * DAY)
    items = (held, later, episode(1, "then", at=BEGIN + DAY))
    now, second = BEGIN + 5 * DAY, timedelta(seconds=1)

    assert let_through(*items, at=now) == ["e-1", "m-002"]
    assert let_through(*items, at=now, valid_at=BEGIN) == ["m-001"]
    assert let_through(*items, at=now, valid_at=BEGIN - second) == []
    assert let_through(*items, at=now, valid_at=BEGIN + 2 * DAY - second) == ["e-1", "m-001"]
    assert let_through(*items, at=now, valid_at=BEGIN + 2 * DAY) == ["e-1", "m-002"]
