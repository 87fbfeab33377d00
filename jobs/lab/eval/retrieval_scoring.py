"""Recall of what was found for questions, by category (LoCoMo's own measure of retrieval)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from statistics import mean
from typing import TypeVar

import numpy as np
from msgspec import Struct

from jobs.lab.eval.retrieval_questions import LabelledQuestion, Place
from jobs.shared.output import Printer

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


def recall(found: Sequence[_Thing], wanted: frozenset[_Thing], depth: int) -> float:
    """Share of what is wanted among the first `depth` found.

    >>> recall(["a", "x", "b"], frozenset("abc"), 2)
    0.3333333333333333
    """
    return len(wanted.intersection(found[:depth])) / len(wanted)


def turn_recalls(answers: Sequence[QuestionResult]) -> dict[str, Recalls]:
    """Mean recall of evidence turns over the questions of each group."""
    return _by_group([(each.question.category, each.turns, each.question.evidence) for each in answers])


def session_recalls(answers: Sequence[QuestionResult]) -> dict[str, Recalls]:
    """Mean recall of the sessions in which evidence stands, over the questions of each group."""
    wanted = [frozenset(session for session, _ in each.question.evidence) for each in answers]
    return _by_group(
        [(each.question.category, each.sessions, these) for each, these in zip(answers, wanted, strict=True)]
    )


def query_times(answers: Sequence[QuestionResult]) -> dict[str, float]:
    """Percentiles of the search for turns, milliseconds."""
    times_ms = [answer.query_ms for answer in answers]
    return {f"p{part}": round(float(np.percentile(times_ms, part)), 3) for part in (50, 95, 99)}


def _by_group(found: Sequence[tuple[int, Sequence[_Thing], frozenset[_Thing]]]) -> dict[str, Recalls]:
    recalls: dict[str, Recalls] = {}
    for name in GROUPS:
        group = [(things, wanted) for category, things, wanted in found if int(name[0]) <= category <= int(name[-1])]
        if group:
            recalls[name] = {
                f"recall@{depth}": round(mean(recall(things, wanted, depth) for things, wanted in group), 4)
                for depth in DEPTHS
            }
    return recalls


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
