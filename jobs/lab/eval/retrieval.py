"""`turntide lab eval retrieval`: how much of what answers a question is found, through the real path.

A broker of its own, the topics, the index role in this process on a store of its own; the turns are produced, the role
indexes them, and every question is asked through `streams.index.hybrid_search.HybridSearch` over the role's store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import perf_counter

from jobs.lab.bench.machine import BenchEnvironment, own_environment
from jobs.lab.eval.retrieval_questions import Dialogues, LabelledQuestion
from jobs.lab.eval.retrieval_scoring import (
    DEPTHS,
    QuestionResult,
    RetrievalScores,
    query_times,
    session_recalls,
    turn_recalls,
)
from jobs.operate.topics import apply_topics
from jobs.shared.progress import Progress
from jobs.shared.sending import send_to_turns
from models.errors import TurntideError
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

_PARTITIONS = 2
_LOOK_EVERY_S = 0.2
_STALLED_AFTER_S = 60.0


class NotIndexed(TurntideError):  # noqa: N818 - says what happened
    """The index role did not come to the end of what was sent."""


def measure(dialogues: Dialogues, embedder: str, progress: Progress) -> RetrievalScores:
    """Send everything, wait until it is indexed, ask everything.

    Raises:
        TurntideError: The broker or the role failed.
    """
    configure_logging(level="warning")
    with own_environment() as ground:
        answers = asyncio.run(_run(ground, dialogues, embedder, progress))
    return RetrievalScores(
        embedder=embedder,
        conversations=dialogues.conversations,
        indexed_turns=len(dialogues.turns),
        questions=len(answers),
        without_evidence=dialogues.without_evidence,
        unknown_evidence=dialogues.unknown_evidence,
        turns=turn_recalls(answers),
        sessions=session_recalls(answers),
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
        NotIndexed: Nothing has come for a minute.
    """
    count, moved_s = 0, perf_counter()
    while count < wanted:
        await asyncio.wait({role}, timeout=_LOOK_EVERY_S)
        if role.done():
            role.result()
            raise NotIndexed("the index role ended before everything was indexed")
        before, count = count, await store.count(TURNS.name)
        if count > before:
            moved_s = perf_counter()
        elif perf_counter() - moved_s > _STALLED_AFTER_S:
            raise NotIndexed(f"{count} of {wanted} turns are indexed and no more come: see the messages above")
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
        answers.append(QuestionResult(question, turns, [session_id for session_id, _ in sessions], query_ms))
        progress(number, len(questions))
    return answers
