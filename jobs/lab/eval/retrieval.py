"""`turntide lab eval retrieval`: how much of what answers a question is found by search.

The turns go into an index of their own (Qdrant Edge), as the index role writes them, and every question is asked
through `streams.index.hybrid_search.HybridSearch` over it.
"""

from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import asynccontextmanager
from statistics import mean
from time import perf_counter
from typing import TypeVar

import numpy as np
from msgspec import Struct

from jobs.lab.bench.measuring import Figures
from jobs.lab.eval.dialogues import Dialogues, LabelledQuestion, Place
from jobs.lab.eval.user_index import index_user, own_store
from jobs.shared.output import Progress
from models.policy import Policy
from streams.index.hybrid_search import HybridSearch, Scope
from streams.ports import Embedder, VectorStore

DEPTHS = (5, 10, 20)
GROUPS = ("1-4", "1-5", "1", "2", "3", "4", "5")
"""First and last of the categories (`LabelledQuestion`) that are averaged together; `1-4` are all but adversarial."""
Recalls = dict[str, float]
"""`recall@5`, `recall@10`, `recall@20`, 0-1."""
_Thing = TypeVar("_Thing", bound=Hashable)
_AT_ONCE = 500


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


async def measure(dialogues: Dialogues, embedder: Embedder, policy: Policy, progress: Progress) -> Figures:
    """Index everything, ask everything.

    `turns` has the recall of evidence turns by group of categories, `sessions` of the sessions in which they stand;
    groups without a question are missing. `query_ms` is one search for turns, in-process.
    """
    async with index_all(dialogues, embedder) as store:
        search, answers = HybridSearch(store, embedder, policy.retrieval), list[QuestionResult]()
        for number, question in enumerate(dialogues.questions, 1):
            answers.append(await _asked(search, question))
            progress(number, len(dialogues.questions))
    turns, sessions = recalls(answers)
    return {
        "embedder": embedder.name,
        "conversations": dialogues.conversations,
        "indexed_turns": len(dialogues.turns),
        "questions": len(answers),
        "without_evidence": dialogues.without_evidence,
        "unknown_evidence": dialogues.unknown_evidence,
        "turns": turns,
        "sessions": sessions,
        "query_ms": query_times(answers),
    }


@asynccontextmanager
async def index_all(dialogues: Dialogues, embedder: Embedder) -> AsyncIterator[VectorStore]:
    """An index with all turns, which goes at the end."""
    async with own_store(embedder) as store:
        for first in range(0, len(dialogues.turns), _AT_ONCE):
            await index_user(store, embedder, dialogues.turns[first : first + _AT_ONCE], [], first)
        yield store


async def _asked(search: HybridSearch, question: LabelledQuestion) -> QuestionResult:
    scope, began_s = Scope(user_id=question.user_id), perf_counter()
    found = await search.turns(question.text, scope, max(DEPTHS))
    query_ms = (perf_counter() - began_s) * 1_000
    sessions = await search.sessions(question.text, scope, max(DEPTHS))
    turns = [(each.turn.session_id, each.turn.turn) for each in found]
    return QuestionResult(question, turns, [session.session_id for session, _ in sessions], query_ms)


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
