"""`turntide bench retrieve`: what is stored and asked, when requests are due, which limits hold. Never how fast."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice, pairwise
from pathlib import Path

import msgspec
import pytest
from jobs.lab.bench.page_parts import HeldFigure

from jobs.lab.bench.command_output import publish
from jobs.lab.bench.measuring import BenchFailed, Figures
from jobs.lab.bench.page import section_of
from jobs.lab.bench.retrieve_corpus import (
    MEMORIES_EACH,
    TURNS_EACH,
    Corpus,
    app_of,
    fill,
    user_of,
    users_for,
)
from jobs.lab.bench.retrieve_http import (
    CONNECTIONS,
    WARM_UP_S,
    Loaded,
    RequestLoad,
    RouteTimes,
    Timetable,
    Within,
    route_of,
)
from jobs.shared.output import OutputFormat
from models.policy import Policy
from streams.index.collections import EPISODES, FACTS
from streams.index.edge import EdgeStore
from streams.index.session_memory import SessionVectorMemory
from streams.index.user_memory import UserMemory
from streams.inference.wordllama import WordLlamaEmbedder


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """With the default policy."""
    return Corpus(Policy())


def route(*, p99_ms: float = 10.0, rate: float = 200.0, errors: int = 0, inside: Within | None = None) -> RouteTimes:
    """A route as it was measured."""
    ratio = None if inside is None else p99_ms / inside.p99_ms
    return RouteTimes("/v1/retrieve", 100, rate, errors, [], 2.0, 5.0, p99_ms, 20.0, 9.0, 0.4, 0.1, inside, ratio)


def report(retrieve: RouteTimes, end_to_end: Figures | None = None) -> Figures:
    """A report of 200 requests a second."""
    return {
        "memories": 1_000,
        "users": 1,
        "embedder": "wordllama",
        "rate": 200.0,
        "seconds": 1.0,
        "fill_s": 1.0,
        "http_alone": route(),
        "routes": [retrieve],
        "rate_that_holds": 200.0,
        "end_to_end": end_to_end,
        "load_average_at_end": 0.0,
    }


def held_of(measured: Figures) -> Sequence[HeldFigure]:
    """What the page holds to a limit."""
    return section_of("retrieve", msgspec.to_builtins(measured)).held


def test_a_user_has_a_thousand_memories(corpus: Corpus) -> None:
    """About; episodes cover the turns without gap or overlap, up to those that are still at hand."""
    made = corpus.user(3)
    ranges = [(episode.first_turn, episode.last_turn) for episode in made.episodes]
    facts = {(fact.category, fact.key) for fact in made.facts}

    assert len(made.turns) + len(made.episodes) + len(facts) == pytest.approx(MEMORIES_EACH, rel=0.01)
    assert [first for first, _ in ranges] == [1, *(last + 1 for _, last in ranges[:-1])]
    assert TURNS_EACH - ranges[-1][1] <= len(made.stats.short_term[-1].turns)
    assert len(facts) > 15


def test_questions_follow_the_seed_and_users_that_are_there(corpus: Corpus) -> None:
    """Another seed makes others; each question names the app of its user."""
    again, other = Corpus(Policy()), Corpus(Policy(), seed=1)

    assert again.user(2) == corpus.user(2)
    assert other.user(2).turns != corpus.user(2).turns
    assert list(islice(again.questions(5), 9)) == list(islice(corpus.questions(5), 9))

    asked = list(islice(corpus.questions(3), 60))

    assert {(each.app_id, each.user_id) for each in asked} == {(app_of(n), user_of(n)) for n in range(3)}


@pytest.mark.parametrize(("memories", "users"), [(100_000, 100), (1_400, 1), (10, 1)])
def test_users_are_as_many_as_the_memories_need(memories: int, users: int) -> None:
    """At least one."""
    assert users_for(memories) == users


async def test_a_store_is_filled_with_what_was_made(corpus: Corpus, tmp_path: Path) -> None:
    """All of it, findable: facts that matter, episodes near a question, the turns at hand."""
    embedder = WordLlamaEmbedder()
    store = EdgeStore(tmp_path, embedder=embedder.name)
    try:
        await fill(store, embedder, corpus, 1)
        users, turns = UserMemory(store, embedder), SessionVectorMemory(store, embedder)
        question = next(corpus.questions(1))
        whose = question.app_id, question.user_id
        counted = await store.count(FACTS.name) + await store.count(EPISODES.name) + await turns.count()
        facts = await users.facts(*whose, min_importance=0.5)
        near = await users.find_episodes(*whose, question.query, max_distance=0.7, top_k=3)
        stats = await users.stats(*whose)
    finally:
        await store.close()

    assert counted == pytest.approx(MEMORIES_EACH, rel=0.05)
    assert len(facts) > 10
    assert len(near) == 3
    assert stats is not None
    assert [turn for run in stats.short_term for turn in run.turns] == list(range(20, 30))


def test_requests_are_due_at_the_rate_from_the_start() -> None:
    """Over all users one after the other, at equal distances, whatever the answers take."""
    table = Timetable(RequestLoad("", [], rate=200.0, seconds=10.0), now_s=100.0)
    due_s = sorted(table.due_s(user, n) for user in range(CONNECTIONS) for n in range(4))
    gaps_s = [after - before for before, after in pairwise(due_s)]

    assert due_s[0] == table.began_s > 100.0
    assert gaps_s == pytest.approx([1 / 200.0] * (4 * CONNECTIONS - 1))
    assert table.ends_s - table.began_s == WARM_UP_S + 10.0


def test_a_run_is_measured_from_when_requests_were_due() -> None:
    """Percentiles, answers a second, CPUs as shares of the time; without answers it says what came instead."""
    loaded = Loaded([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], seconds=2.0, errors=1, error_kinds=["503"], cpu_s=0.5)
    found = route_of("/v1/retrieve", loaded, server_cpus=0.4)

    assert (found.requests, found.rate, found.errors, found.p50_ms, found.max_ms) == (3, 1.5, 1, 2.0, 3.0)
    assert (found.answer_p99_ms, found.server_cpus, found.client_cpus) == (1.0, 0.4, 0.25)

    with pytest.raises(BenchFailed, match="401"):
        route_of("/v1/retrieve", Loaded([], [], 1.0, 1, ["401 "], 0.0), server_cpus=0.0)


@pytest.mark.parametrize(
    ("measured", "reached"),
    [(route(), True), (route(p99_ms=15.1), False), (route(errors=1), False), (route(rate=190.0), False)],
)
def test_the_limit_holds_only_for_answers_that_keep_up(measured: RouteTimes, reached: bool) -> None:
    """A server that refuses or falls behind has not reached it, however fast the others were answered."""
    (held,) = held_of(report(measured))

    assert held.reached is reached


def test_what_was_measured_is_held_to_its_limit() -> None:
    """Inside the process, and end to end, where a prompt without its turn reaches nothing."""
    end = {"asked": 9, "p50_ms": 50.0, "p99_ms": 100.0, "without_turn": 1}
    held = held_of(report(route(p99_ms=15.0, inside=Within(1.0, 2.0, 6.0)), end))

    assert [(each.bound, each.reached) for each in held] == [(15.0, True), (5.0, False), (500.0, False)]


def test_figures_are_printed_with_their_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    """As JSON and as a table."""
    measured = report(route(inside=Within(1.0, 2.0, 4.0)))
    publish("retrieve", OutputFormat.JSON, lambda _: measured)
    as_json = json.loads(capsys.readouterr().out)
    publish("retrieve", OutputFormat.TABLE, lambda _: measured)
    as_table = capsys.readouterr().out

    assert as_json["routes"][0]["ratio_p99"] == 2.5
    assert "/v1/retrieve" in as_table
