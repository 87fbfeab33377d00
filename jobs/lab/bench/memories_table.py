"""The figures of `turntide bench memories`, for people."""

from __future__ import annotations

from typing import Any

import msgspec

from jobs.lab.bench.memories import Report, Times
from jobs.lab.bench.topics_table import held_row
from jobs.shared.output import Output


def show(printed: Output, report: Report) -> None:
    """Print the tables."""
    share = report.share
    printed.rows("What is held to", [held_row(figure) for figure in report.held])
    printed.rows("Making memories, CPU ms", map(times_row, report.work))
    printed.rows(f"Reading {report.memories:,} memories of {report.apps:,} apps, ms", map(times_row, report.reading))
    printed.rows("Conversations that end on one app", [msgspec.to_builtins(report.ends)])
    printed.message(
        f"A conversation that also compacts takes {report.ratio_compaction:.2f} times one that does not; the context "
        f"{report.ratio_context:.2f} times the memories alone. Of the folds over {share.turns:,} turns spaces take "
        f"{share.spaces_percent:.1f} %, of these with decoding, scoring and embedding {share.whole_percent:.1f} %, "
        f"{report.own_words_percent:.1f} % with words of their own; the "
        f"sessions' fold takes {share.ratio_sessions_fold:.2f} times that without "
        f"memories of apps. Load average before: {report.load_average_at_start:.1f}, {report.cpus} CPUs"
    )


def times_row(times: Times) -> dict[str, Any]:
    """Percentiles as a row."""
    return {
        "what": times.what,
        "p50": round(times.p50_ms, 3),
        "p95": round(times.p95_ms, 3),
        "p99": round(times.p99_ms, 3),
        "count": times.count,
    }
