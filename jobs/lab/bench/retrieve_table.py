"""The figures of `turntide bench retrieve`, for people and as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from jobs.lab.bench.retrieve import Report
from jobs.lab.bench.retrieve_figures import Route
from jobs.shared.output import Output


def printable(report: Report) -> dict[str, Any]:
    """A report as JSON has it: with the ratio of each route."""
    routes = [{**msgspec.to_builtins(route), "ratio_p99": route.ratio_p99} for route in report.routes]
    return {**msgspec.to_builtins(report), "routes": routes}


def show(printed: Output, report: Report) -> None:
    """Print the tables."""
    printed.rows(
        f"{report.memories:,} memories, {report.rate:g} requests/s", map(_row, [report.http_alone, *report.routes])
    )
    if report.end_to_end is not None:
        printed.rows("from a turn that is sent to its context", [msgspec.to_builtins(report.end_to_end)])
    printed.rows("held to", [msgspec.to_builtins(figure) for figure in report.held])
    printed.message(
        f"retrieve holds its limit at {report.rate_that_holds:g} requests/s; load average "
        f"{report.load_average_at_start:.1f} before, {report.load_average_at_end:.1f} after, {report.cpus} CPUs"
    )


def _row(route: Route) -> dict[str, Any]:
    inside = route.inside
    return {
        "route": route.path,
        "rate": round(route.rate, 1),
        "errors": route.errors,
        "p50_ms": round(route.p50_ms, 2),
        "p95_ms": round(route.p95_ms, 2),
        "p99_ms": round(route.p99_ms, 2),
        "inside_p50_ms": None if inside is None else round(inside.p50_ms, 2),
        "inside_p99_ms": None if inside is None else round(inside.p99_ms, 2),
        "ratio_p99": None if route.ratio_p99 is None else round(route.ratio_p99, 1),
        "server_cpus": round(route.server_cpus, 2),
        "client_cpus": round(route.client_cpus, 2),
    }
