"""The report of `turntide eval retrieval` for people."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.lab.eval.retrieval_scoring import Report
from jobs.shared.output import Output

_NAMES = {
    "1-4": "all but adversarial",
    "1-5": "all",
    "1": "multi-hop",
    "2": "temporal",
    "3": "open-domain",
    "4": "single-hop",
    "5": "adversarial",
}


def show(printed: Output, report: Report) -> None:
    """Print the recalls and what they are of."""
    printed.rows("Recall", recall_rows(report))
    printed.message(
        f"{report.embedder}: {report.questions:,} questions about {report.indexed_turns:,} turns of "
        f"{report.conversations} conversations; {report.without_evidence} without evidence skipped"
    )
    printed.message("one search: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in report.query_ms.items()))


def recall_rows(report: Report) -> Iterator[dict[str, str]]:
    """A row for each group of categories, first of turns, then of sessions."""
    for what, groups in (("turns", report.turns), ("sessions", report.sessions)):
        for group, recalls in groups.items():
            figures = {depth: f"{value:.3f}" for depth, value in recalls.items()}
            yield {"what": what, "categories": group, "questions": _NAMES[group]} | figures
