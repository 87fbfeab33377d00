"""The report of `turntide bench stream` for people: each figure with its range over the rounds, then the stages."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.lab.bench.figures import Report
from jobs.shared.output import Output


def show(printed: Output, report: Report) -> None:
    """Print the tables."""
    printed.message(
        f"rounds: {report.runs}, turns in each: {report.turns:,}, CPUs: {report.cpus}, load average before: "
        f"{report.load_average_at_start:.2f}"
    )
    printed.rows("Throughput, latency, size", figure_rows(report))
    printed.rows("What a turn costs the role", stage_rows(report))


def figure_rows(report: Report) -> Iterator[dict[str, str]]:
    """Every figure of the rounds, ratios as such."""
    latency = report.alert_latency_ms
    middle: dict[str, float | None] = {
        **{f"{name}_turns_per_s": rate for name, rate in report.absolute_turns_per_s.items()},
        "alert_latency_ms_p50": latency.p50,
        "alert_latency_ms_p99": latency.p99,
    }
    for key, (smallest, largest) in report.spread.items():
        median = middle[key] if key in middle else getattr(report, key)
        yield {"figure": key, "median": _short(median), "min": _short(smallest), "max": _short(largest)}


def stage_rows(report: Report) -> Iterator[dict[str, str]]:
    """Stage, microseconds per turn and share, dearest first."""
    total = sum(report.stage_us_per_turn.values())
    for name, us in sorted(report.stage_us_per_turn.items(), key=lambda item: -item[1]):
        yield {"stage": name, "µs per turn": f"{us:.1f}", "share": f"{us / total:.0%}"}


def _short(value: float | None) -> str:
    """Three digits that matter.

    >>> _short(12345.6), _short(4.5678), _short(0.05), _short(None)
    ('12,346', '4.57', '0.05', '')
    """
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits
