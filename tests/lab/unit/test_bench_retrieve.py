"""`turntide lab bench retrieve`: what is stored and asked, when requests are due, which limits hold. Never how fast."""

from itertools import islice, pairwise
from pathlib import Path
from time import perf_counter

import httpx
import pytest

from jobs.lab.bench.folds import paced
from jobs.lab.bench.http_load import Answered, figures_of
from jobs.lab.bench.measuring import BenchFailed
from jobs.lab.bench.retrieve import MEMORIES_EACH, TURNS_EACH, Corpus, app_of, context_with, fill, user_of
from models.events import EpisodeCompressed, FactChanged, UserMemoryChanged
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


def test_a_user_has_a_thousand_memories(corpus: Corpus) -> None:
    """About; episodes cover the turns without gap or overlap, up to those that are still at hand."""
    turns, outputs = corpus.user(3)
    ranges = [(each.first_turn, each.last_turn) for each in outputs if isinstance(each, EpisodeCompressed)]
    facts = {(each.category, each.key) for each in outputs if isinstance(each, FactChanged)}
    stats = [each for each in outputs if isinstance(each, UserMemoryChanged)][-1]

    assert len(turns) + len(ranges) + len(facts) == pytest.approx(MEMORIES_EACH, rel=0.01)
    assert [first for first, _ in ranges] == [1, *(last + 1 for _, last in ranges[:-1])]
    assert TURNS_EACH - ranges[-1][1] <= len(stats.short_term[-1].turns)
    assert len(facts) > 15


def test_questions_follow_the_seed_and_users_that_are_there(corpus: Corpus) -> None:
    """Another seed makes others; each question names the app of its user."""
    again, other = Corpus(Policy()), Corpus(Policy(), seed=1)

    assert again.user(2) == corpus.user(2)
    assert other.user(2)[0] != corpus.user(2)[0]
    assert list(islice(again.questions(5), 9)) == list(islice(corpus.questions(5), 9))

    asked = list(islice(corpus.questions(3), 60))

    assert {(each.app_id, each.user_id) for each in asked} == {(app_of(n), user_of(n)) for n in range(3)}


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


async def test_requests_are_due_at_the_rate_from_the_start() -> None:
    """At equal distances, whatever is done meanwhile, and none is given before it is due."""
    found = [(due_s, perf_counter()) async for due_s, _ in paced(range(20), 500.0)]

    assert [after[0] - before[0] for before, after in pairwise(found)] == pytest.approx([1 / 500.0] * 19)
    assert all(given_s >= due_s for due_s, given_s in found)


@pytest.mark.behaviour("user-24")
def test_a_run_is_measured_from_when_requests_were_due() -> None:
    """Percentiles and answers a second, the warm-up left out; without answers it says what came instead."""
    warm_up, refused = Answered(0.0, 0.0, 9.0, "in the warm-up"), Answered(11.0, 11.0, 11.5, "503 ")
    found = figures_of([warm_up, Answered(10.0, 10.5, 11.0), refused, Answered(10.0, 11.0, 12.0)], began_s=10.0)

    assert (found["requests"], found["rate"], found["errors"], found["error_kinds"]) == (2, 1.0, 1, ["503 "])
    assert (found["p50_ms"], found["max_ms"]) == (1_500.0, 2_000.0)
    assert found["answer_p99_ms"] < found["p99_ms"]
    with pytest.raises(BenchFailed, match="503"):
        figures_of([refused], began_s=10.0)


async def test_a_turn_that_is_not_visible_in_time_is_late_and_not_the_end() -> None:
    """A busy machine must not cost the figures that are measured already; another failure ends them."""
    answers = iter([httpx.Response(200, json={"prompt": "Hello"}), httpx.Response(504), httpx.Response(500)])
    turn = Corpus(Policy()).turns(0, 1)[0]
    async with httpx.AsyncClient(
        base_url="http://bench", transport=httpx.MockTransport(lambda _: next(answers))
    ) as client:
        assert [await context_with(client, turn) for _ in range(2)] == ["Hello", None]
        with pytest.raises(BenchFailed, match="500"):
            await context_with(client, turn)
