"""The figures of `turntide bench project`, for people."""

from __future__ import annotations

from typing import Any

import msgspec

from jobs.lab.bench.memories_table import times_row
from jobs.lab.bench.project import Report
from jobs.lab.bench.project_work import Consolidated, Talk
from jobs.lab.bench.topics_table import held_row
from jobs.shared.output import Output


def show(printed: Output, report: Report) -> None:
    """Print the tables."""
    printed.rows("What is held to", [held_row(figure) for figure in report.held])
    printed.rows(f"Reading a project of {report.memories:,} memories, ms", map(times_row, report.reading))
    printed.rows("Conversations, CPU ms of a turn", map(_rounded, report.talks))
    printed.rows("Consolidation, CPU ms", [_rounded(report.consolidation)])
    printed.message(
        f"A turn into the full project takes {report.ratio_full_project:.2f} times one into an empty one; adding a "
        f"memory by hand {report.fill_ms:.2f} ms. Load average before: {report.load_average_at_start:.1f}, "
        f"{report.cpus} CPUs"
    )


def _rounded(figures: Talk | Consolidated) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(figures)
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in values.items()}
