"""The report of `turntide bench topics` for people."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from jobs.lab.bench.topics import Figure, Report, Times
from jobs.shared.output import Output


def show(printed: Output, report: Report) -> None:
    """Print the tables, then what there is to say about them."""
    printed.message(
        f"{report.dialogues:,} dialogues as {report.sessions} long sessions of {report.turns:,} turns; "
        f"{report.embedder} at {report.similarity_threshold:g}; load average before: {report.load_average_at_start:.2f}"
    )
    printed.rows("What is held to", [held_row(figure) for figure in report.held])
    printed.rows("Time, CPU ms", time_rows(report))
    printed.rows("Packing", [_rounded(msgspec.to_builtins(row)) for row in report.packing])
    printed.rows("Throughput with topics to that without", ratio_rows(report))
    printed.rows("State, KB of 1,000 bytes", size_rows(report))
    printed.rows("Packed messages, searched for", [_rounded(msgspec.to_builtins(report.probes))])
    for note in report.notes:
        printed.message(note)


def held_row(figure: Figure) -> dict[str, str]:
    """A figure beside its limit."""
    return {
        "figure": figure.figure,
        "held to": f"{'≥' if figure.at_least else '≤'} {figure.limit:g} {figure.unit}",
        "measured": f"{figure.measured:.3g} {figure.unit}",
        "": "reached" if figure.reached else "missed",
    }


def time_rows(report: Report) -> Iterator[dict[str, str]]:
    """Median and p99 of everything timed."""
    timed: dict[str, Times | None] = {
        "add_ms": report.add_ms,
        "match_ms": report.match_ms,
        "unpack_ms": report.unpack_ms,
        "unpack_deflate_ms": report.unpack_deflate_ms,
        "add_with_compaction_ms": report.add_with_compaction_ms,
        "add_with_unpacking_ms": report.add_with_unpacking_ms,
    }
    for name, times in timed.items():
        if times is not None:
            yield {"what": name, "median": f"{times.median:.3f}", "p99": f"{times.p99:.3f}", "count": str(times.count)}


def ratio_rows(report: Report) -> Iterator[dict[str, str]]:
    """The role and the fold."""
    ratios = {
        "ratio_throughput": report.ratio_throughput,
        "ratio_fold": report.ratio_fold,
        "ratio_fold_traffic": report.ratio_fold_traffic,
    }
    for name, ratio in ratios.items():
        if ratio is not None:
            yield {
                "what": name,
                "ratio": f"{ratio.ratio:.2f}",
                "rounds": " ".join(f"{each:.2f}" for each in ratio.rounds),
                "with, turns/s": f"{ratio.with_topics_turns_per_s:,.0f}",
                "without, turns/s": f"{ratio.without_topics_turns_per_s:,.0f}",
            }


def size_rows(report: Report) -> Iterator[dict[str, str]]:
    """What topics take in the state."""
    sizes = {"kb_per_topic": report.kb_per_topic, "kb_for_20_topics": report.kb_for_20_topics}
    for name, size in sizes.items():
        if size is not None:
            yield {"what": name, "median": f"{size.median:.1f}", "largest": f"{size.largest:.1f}"}


def _rounded(fields: dict[str, object]) -> dict[str, str]:
    """Each value in three figures."""
    return {
        name: f"{value:.3g}" if isinstance(value, float) else "" if value is None else f"{value}"
        for name, value in fields.items()
    }
