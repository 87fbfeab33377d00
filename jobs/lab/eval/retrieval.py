"""`turntide lab eval retrieval`: how much of what answers a question is found, through the real path.

A broker of its own, the topics, the index role in this process on a store of its own; the turns are produced, the role
indexes them, and every question is asked through `streams.index.hybrid_search.HybridSearch` over the role's store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterator, Sequence
from contextlib import asynccontextmanager
from statistics import mean
from time import perf_counter
from typing import TypeVar

import numpy as np
from msgspec import Struct

from jobs.lab.bench.measuring import BenchEnvironment, BenchFailed, own_environment
from jobs.lab.eval.dialogues import Dialogues, LabelledQuestion, Place
from jobs.operate.topics import apply_topics
from jobs.shared.output import Printer, Progress
from jobs.shared.sending import send_to_turns
from models.wire.codec import encode
from models.wire.envelope import headers_for
from streams.index.collections import TURNS
from streams.index.hybrid_search import HybridSearch, Scope
from streams.kafka.producer import Record
from streams.observe.telemetry import configure_logging
from streams.ports import VectorStore
from streams.roles.index import IndexRole
from streams.settings import Settings, load_settings
from streams.settings.http import HttpSettings
from streams.wiring import embedder_of, policy_of, scorer_of, vector_store_of

DEPTHS = (5, 10, 20)
GROUPS = {
    "1-4": "all but adversarial",
    "1-5": "all",
    "1": "multi-hop",
    "2": "temporal",
    "3": "open-domain",
    "4": "single-hop",
    "5": "adversarial",
}
"""First and last of the categories that are averaged together, and what they are called."""
Recalls = dict[str, float]
"""`recall@5`, `recall@10`, `recall@20`, 0-1."""
_Thing = TypeVar("_Thing", bound=Hashable)


class QuestionResult(Struct, frozen=True):
    """What was found for a question, best first, and how long that took.

    Attributes:
        turns: Up to `max(DEPTHS)`, like `sessions`.
        query_ms: Of the search for turns.
    """

    question: LabelledQuestion
    turns: list[Place]
    sessions: list[str]
    query_ms: float


class RetrievalScores(Struct, frozen=True, kw_only=True):
    """What `turntide lab eval retrieval` prints.

    Attributes:
        turns: Recall of evidence turns by group of categories; groups without a question are missing.
        sessions: Recall of the sessions in which they stand.
        query_ms: `p50`, `p95` and `p99` of one search for turns, in-process.
        without_evidence: Questions that were skipped.
        unknown_evidence: Turns named as evidence that are not in the file.
    """

    embedder: str
    conversations: int
    indexed_turns: int
    questions: int
    without_evidence: int
    unknown_evidence: int
    turns: dict[str, Recalls]
    sessions: dict[str, Recalls]
    query_ms: dict[str, float]


_PARTITIONS = 2
_LOOK_EVERY_S = 0.2
_STALLED_AFTER_S = 60.0


def measure(dialogues: Dialogues, embedder: str, progress: Progress) -> RetrievalScores:
    """Send everything, wait until it is indexed, ask everything.

    Raises:
        TurntideError: The broker or the role failed.
    """
    configure_logging(level="warning")
    with own_environment() as ground:
        answers = asyncio.run(_run(ground, dialogues, embedder, progress))
    turns, sessions = recalls(answers)
    return RetrievalScores(
        embedder=embedder,
        conversations=dialogues.conversations,
        indexed_turns=len(dialogues.turns),
        questions=len(answers),
        without_evidence=dialogues.without_evidence,
        unknown_evidence=dialogues.unknown_evidence,
        turns=turns,
        sessions=sessions,
        query_ms=query_times(answers),
    )


async def _run(
    ground: BenchEnvironment, dialogues: Dialogues, embedder: str, progress: Progress
) -> list[QuestionResult]:
    settings = load_settings(
        kafka={"bootstrap": ground.bootstrap, "partitions": _PARTITIONS},
        topic_prefix="eval-retrieval",
        data_dir=ground.home,
        http=HttpSettings(index_port=0),
        vectors={"embedder": embedder, "url": None},
    )
    await apply_topics(settings)
    await send_to_turns(
        settings, (Record(turn.session_id.encode(), encode(turn), headers_for(turn)) for turn in dialogues.turns)
    )
    async with _indexing(settings) as (store, search, role):
        await _indexed(store, role, len(dialogues.turns), progress)
        return await _asked(search, dialogues.questions, progress)


@asynccontextmanager
async def _indexing(settings: Settings) -> AsyncIterator[tuple[VectorStore, HybridSearch, asyncio.Task[None]]]:
    """The index role in this process, its store, and search over it; stopped at the end."""
    embedder, policy, stop = embedder_of(settings), policy_of(settings), asyncio.Event()
    store = vector_store_of(settings, embedder)
    role = asyncio.create_task(IndexRole(settings, policy, embedder, scorer_of(settings, embedder), store).run(stop))
    try:
        yield store, HybridSearch(store, embedder, policy.retrieval), role
    finally:
        stop.set()
        await asyncio.wait({role})


async def _indexed(store: VectorStore, role: asyncio.Task[None], wanted: int, progress: Progress) -> None:
    """Return once every turn is in the store.

    Raises:
        TurntideError: The role ended.
        BenchFailed: Nothing has come for a minute.
    """
    count, moved_s = 0, perf_counter()
    while count < wanted:
        await asyncio.wait({role}, timeout=_LOOK_EVERY_S)
        if role.done():
            role.result()
            raise BenchFailed("the index role ended before everything was indexed")
        before, count = count, await store.count(TURNS.name)
        if count > before:
            moved_s = perf_counter()
        elif perf_counter() - moved_s > _STALLED_AFTER_S:
            raise BenchFailed(f"{count} of {wanted} turns are indexed and no more come: see the messages above")
        progress(count, wanted)


async def _asked(
    search: HybridSearch, questions: Sequence[LabelledQuestion], progress: Progress
) -> list[QuestionResult]:
    """Ask every question, one after the other."""
    answers = []
    for number, question in enumerate(questions, 1):
        scope = Scope(user_id=question.user_id)
        began_s = perf_counter()
        found = await search.turns(question.text, scope, max(DEPTHS))
        query_ms = (perf_counter() - began_s) * 1_000
        sessions = await search.sessions(question.text, scope, max(DEPTHS))
        turns = [(each.turn.session_id, each.turn.turn) for each in found]
        answers.append(QuestionResult(question, turns, [session.session_id for session, _ in sessions], query_ms))
        progress(number, len(questions))
    return answers


def recall(found: Sequence[_Thing], wanted: frozenset[_Thing], depth: int) -> float:
    """Share of what is wanted among the first `depth` found.

    >>> recall(["a", "x", "b"], frozenset("abc"), 2)
    0.3333333333333333
    """
    return len(wanted.intersection(found[:depth])) / len(wanted)


def query_times(answers: Sequence[QuestionResult]) -> dict[str, float]:
    """Percentiles of the search for turns, milliseconds."""
    times_ms = [answer.query_ms for answer in answers]
    return {f"p{part}": round(float(np.percentile(times_ms, part)), 3) for part in (50, 95, 99)}


def recalls(answers: Sequence[QuestionResult]) -> tuple[dict[str, Recalls], dict[str, Recalls]]:
    """Mean recall of evidence turns, and of the sessions in which they stand, over the questions of each group."""
    turns, sessions = dict[str, Recalls](), dict[str, Recalls]()
    for name in GROUPS:
        group = [each for each in answers if int(name[0]) <= each.question.category <= int(name[-1])]
        if group:
            turns[name] = _mean([(each.turns, each.question.evidence) for each in group])
            wanted = [frozenset(session for session, _ in each.question.evidence) for each in group]
            sessions[name] = _mean([(each.sessions, known) for each, known in zip(group, wanted, strict=True)])
    return turns, sessions


def _mean(found: Sequence[tuple[Sequence[_Thing], frozenset[_Thing]]]) -> Recalls:
    return {
        f"recall@{depth}": round(mean(recall(things, wanted, depth) for things, wanted in found), 4) for depth in DEPTHS
    }


def show(printed: Printer, report: RetrievalScores) -> None:
    """Print the recalls and what they are of."""
    printed.rows("Recall", recall_rows(report))
    printed.message(
        f"{report.embedder}: {report.questions:,} questions about {report.indexed_turns:,} turns of "
        f"{report.conversations} conversations; {report.without_evidence} without evidence skipped"
    )
    printed.message("one search: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in report.query_ms.items()))


def recall_rows(report: RetrievalScores) -> Iterator[dict[str, str]]:
    """A row for each group of categories, first of turns, then of sessions."""
    for what, groups in (("turns", report.turns), ("sessions", report.sessions)):
        for group, recalls in groups.items():
            figures = {depth: f"{value:.3f}" for depth, value in recalls.items()}
            yield {"what": what, "categories": group, "questions": GROUPS[group]} | figures
