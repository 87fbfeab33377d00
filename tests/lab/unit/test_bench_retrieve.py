"""`turntide lab bench retrieve`: what is stored and asked, when requests are due, which limits hold. Never how fast."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice, pairwise
from pathlib import Path

import pytest

from jobs.lab.bench import retrieve_http
from jobs.lab.bench.measuring import BenchFailed, Figures
from jobs.lab.bench.page import publish, section_of
from jobs.lab.bench.page_layout import HeldFigure
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
    RequestLoad,
    Timetable,
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


def measured(*, end_to_end: Figures | None = None, inside_ms: float | None = None, **figures: float) -> Figures:
    """What the command prints of 200 requests a second to a route with these figures."""
    route: Figures = {"path": "/v1/retrieve", "p99_ms": 10.0, "rate": 200.0, "errors": 0, **figures}
    if inside_ms is not None:
        route |= {"inside": {"p99_ms": inside_ms}, "ratio_p99": route["p99_ms"] / inside_ms}
    return {"rate": 200.0, "routes": [route], "end_to_end": end_to_end}


def held_of(measured: Figures) -> Sequence[HeldFigure]:
    """What the page holds to a limit."""
    return section_of("retrieve", measured).held


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


def test_a_run_is_measured_from_when_requests_were_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """Percentiles, answers a second, CPUs as shares of the time; without answers it says what came instead."""
    table = Timetable(RequestLoad("", [], rate=200.0, seconds=10.0), now_s=0.0)
    table.note(table.began_s, table.began_s, "in the warm-up")
    now_s = table.counts_from_s
    for late_s in (1.0, 2.0):
        monkeypatch.setattr(retrieve_http, "perf_counter", lambda late_s=late_s: now_s + late_s)
        table.note(now_s, now_s + late_s / 2, "")
    table.note(now_s, now_s, "503 ")
    found = table.figures("/v1/retrieve", 0.5)

    assert (found["requests"], found["rate"], found["errors"], found["error_kinds"]) == (2, 1.0, 1, ["503 "])
    assert (found["p50_ms"], found["max_ms"], found["client_cpus"]) == (1_500.0, 2_000.0, 0.25)
    assert found["answer_p99_ms"] < found["p99_ms"]

    refused = Timetable(RequestLoad("", [], rate=200.0, seconds=10.0), now_s=-9.0)
    refused.note(now_s, now_s, "401 ")
    with pytest.raises(BenchFailed, match="401"):
        refused.figures("/v1/retrieve", 0.0)


@pytest.mark.parametrize(
    ("figures", "reached"),
    [({}, True), ({"p99_ms": 15.1}, False), ({"errors": 1}, False), ({"rate": 190.0}, False)],
)
def test_the_limit_holds_only_for_answers_that_keep_up(figures: Figures, reached: bool) -> None:
    """A server that refuses or falls behind has not reached it, however fast the others were answered."""
    (held,) = held_of(measured(**figures))

    assert held.reached is reached


def test_what_was_measured_is_held_to_its_limit() -> None:
    """Inside the process, and end to end, where a prompt without its turn reaches nothing."""
    end = {"asked": 9, "p50_ms": 50.0, "p99_ms": 100.0, "without_turn": 1}
    held = held_of(measured(p99_ms=15.0, inside_ms=6.0, end_to_end=end))

    assert [(each.bound, each.reached) for each in held] == [(15.0, True), (5.0, False), (500.0, False)]


def test_figures_are_printed_with_their_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    """As JSON and as a table."""
    publish("retrieve", OutputFormat.JSON, lambda _: measured(inside_ms=4.0))
    as_json = json.loads(capsys.readouterr().out)
    publish("retrieve", OutputFormat.TABLE, lambda _: measured(inside_ms=4.0))
    as_table = capsys.readouterr().out

    assert as_json["routes"][0]["ratio_p99"] == 2.5
    assert "/v1/retrieve" in as_table
