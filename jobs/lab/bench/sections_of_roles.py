"""The page's sections about the roles: speed, recovery, size, cost, memory, kills and chaos."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from jobs.lab.bench.page_parts import (
    CONTENDERS,
    HeldFigure,
    PagePicture,
    PageSection,
    PageTable,
    PrintedResult,
    Rows,
    TableLayout,
    curve_picture,
    held,
    number,
    number_table,
    points,
    rounds,
    words,
)
from jobs.shared.charts import Bar, Curve, Limit, Series, draw_bars, draw_grouped_bars

_RATIO_AT_LEAST = {"plain_fold": 0.5, "per_event_faust": 5.0, "quix": 1.5}
"""What the sessions role's throughput, divided by the other's, is held to (design §8)."""
_LATENCY_MS_AT_MOST = {"p50": 15.0, "p99": 75.0}
_CHANGELOG_PER_TURN_BYTE, _CHANGELOG_BESIDE_BYTES = 2.0, 1_000.0
_LONG_SESSION_RATIO = 1.3
_KILLS_AT_LEAST, _SEEDS_AT_LEAST = 200, 20
_AFTER_TIMEOUT_S = 1.0
"""So much later than the session time-out may an alert come after a kill."""
_OURS = "sessions_role"
_SIZES = TableLayout(
    first="size",
    columns=["value: "],
    listed=[
        "turn_bytes: a turn's record, bytes",
        "changelog_bytes_per_turn: changelog per turn, bytes",
        "mb_per_10000_sessions: state of 10,000 sessions, MB",
    ],
)
_WRONG = ("lost", "doubled", "alerts_missing", "alerts_false")


def stream_section(measured: PrintedResult, before: PrintedResult | None = None) -> PageSection:
    """Throughput, alert latency, and what a turn costs by stage.

    Args:
        measured: Of `turntide bench stream`.
        before: The same of an earlier state of the code, for the stages.
    """
    rates, now = measured.numbers("absolute_turns_per_s"), measured.numbers("stage_us_per_turn")
    earlier = before.numbers("stage_us_per_turn") if before else {}
    said = [
        "All contenders take the same backlog, one after the other in each round. A ratio is the sessions role's "
        "throughput divided by the other's in the same round. " + rounds(measured)
    ]
    if before:
        said.append(
            "`before` is the role before its dearest stages were worked on, and without topic memory, which is a third "
            "of the fold."
        )
    return PageSection(
        title="Throughput and latency",
        said=said,
        held=_stream_held(measured),
        tables=[
            _contenders(measured, rates),
            _latency(measured),
            _SIZES.table(measured, {}),
            _stages(now, earlier),
        ],
        pictures=_stream_pictures(measured, rates, now, earlier),
    )


def _stream_held(measured: PrintedResult) -> list[HeldFigure]:
    found = []
    for name, bound in _RATIO_AT_LEAST.items():
        what = f"throughput to {CONTENDERS[name]}"
        found += held(what, measured.number(f"ratio_{name}"), at_least=bound, unit="×")
    for name, bound in _LATENCY_MS_AT_MOST.items():
        what = f"turn to alert, {name}, 500 turns/s"
        found += held(what, measured.number("alert_latency_ms", name), at_most=bound, unit="ms")
    if (turn_bytes := measured.number("turn_bytes")) is not None:
        bound = _CHANGELOG_PER_TURN_BYTE * turn_bytes + _CHANGELOG_BESIDE_BYTES
        written = measured.number("changelog_bytes_per_turn")
        found += held("changelog per turn (2 × the turn + 1 KB)", written, at_most=bound, unit="bytes")
    return found


def _contenders(measured: PrintedResult, rates: Mapping[str, float]) -> PageTable:
    rows = []
    for name, rate in rates.items():
        span = measured.pair("spread", f"{name}_turns_per_s")
        shown = f"{number(span[0])} – {number(span[1])}" if span else ""
        rows.append((CONTENDERS.get(name, name), number(rate), shown, number(measured.number(f"ratio_{name}"), "×")))
    return PageTable(("contender", "turns/s", "range", "sessions role is"), rows)


def _latency(measured: PrintedResult) -> PageTable:
    latency = measured.part("alert_latency_ms") or PrintedResult({})
    rows = [("turn to alert at 500 turns/s", latency)] if latency.number("p50") is not None else []
    return number_table("latency", {"p50": "p50, ms", "p99": "p99, ms", "alerts": "alerts"}, rows)


def _stage_names(now: Mapping[str, float], earlier: Mapping[str, float]) -> list[str]:
    return sorted({**now, **earlier}, key=lambda name: -earlier.get(name, now.get(name, 0.0)))


def _stages(now: Mapping[str, float], earlier: Mapping[str, float]) -> PageTable:
    total, rows = sum(now.values()), []
    for name in _stage_names(now, earlier):
        share = f"{now.get(name, 0.0) / total:.0%}" if total else ""
        rows.append((name, number(earlier.get(name)), number(now.get(name)), share))
    if rows:
        rows.append(("all", number(sum(earlier.values())) if earlier else "", number(total), ""))
    return PageTable(("stage", "before, µs a turn", "µs a turn", "share"), rows)


def _stream_pictures(
    measured: PrintedResult, rates: Mapping[str, float], now: Mapping[str, float], earlier: Mapping[str, float]
) -> list[PagePicture]:
    throughput = [
        Bar(CONTENDERS.get(name, name), rate, ours=name == _OURS)
        for name, rate in sorted(rates.items(), key=lambda item: -item[1])
    ]
    latency = [
        Bar(name, value, Limit(bound, f"held to ≤ {bound:g}"))
        for name, bound in _LATENCY_MS_AT_MOST.items()
        if (value := measured.number("alert_latency_ms", name)) is not None
    ]
    pictures = [
        *bar_picture(
            "throughput.svg", "Throughput of each contender, turns per second", throughput,
            title="Throughput on one backlog", x_label="turns per second",
        ),
        *bar_picture(
            "latency.svg", "Alert latency, p50 and p99, beside what they are held to", latency,
            title="From a turn to the alert it raises, at 500 turns/s", x_label="ms",
        ),
    ]  # fmt: skip
    names = _stage_names(now, earlier)
    series = [
        Series(label, [stages.get(name) for name in names])
        for label, stages in (("before", earlier), ("now", now))
        if stages
    ]
    title = "What a turn costs the sessions role, by stage"
    draw = partial(draw_grouped_bars, title=title, x_label="µs per turn", rows=names, series=series)
    return [*pictures, *([PagePicture("stages.svg", "Microseconds per turn of each stage", draw)] if now else [])]


def bar_picture(file: str, shows: str, bars: Sequence[Bar], title: str, x_label: str) -> list[PagePicture]:
    """A picture of bars, drawn by `draw_bars`; none without any."""
    return [PagePicture(file, shows, partial(draw_bars, bars=bars, title=title, x_label=x_label))] if bars else []


def _scale_said(measured: PrintedResult) -> list[str]:
    cpus, partitions = measured.number("cpus"), measured.number("partitions")
    if cpus is None or not measured.rows("workers"):
        return []
    limit = (
        f"The machine has {number(cpus)} CPUs, and the broker uses them too: more workers than CPUs cannot be faster."
    )
    return [limit + (f" They share {number(partitions)} partitions." if partitions is not None else "")]


def _scale_held(measured: PrintedResult) -> list[HeldFigure]:
    turns = [row.number("turn") for row in measured.rows("session_length")]
    longest = f"turn {number(turns[-1])}" if turns else "the longest session"
    ratio = measured.number("ratio_long_session")
    return held(f"cost of a turn, {longest} to turn 10", ratio, at_most=_LONG_SESSION_RATIO, unit="×")


def _scale_pictures(measured: PrintedResult) -> list[PagePicture]:
    length = points(measured.rows("session_length"), "turn", "us_per_turn")
    rows, cpus = measured.rows("sessions"), measured.number("cpus")
    memory = [
        Curve(label, [(x, y) for x, y in points(rows, "sessions", key, 1 / 2**20) if y > 0])
        for label, key in (("process", "memory_bytes"), ("encoded state", "state_bytes"))
    ]
    limit = (
        Limit(_LONG_SESSION_RATIO * length[0][1], f"held to ≤ {_LONG_SESSION_RATIO:g} × the first") if length else None
    )
    machine = f", on {number(cpus)} CPUs" if cpus is not None else ""
    return [
        *curve_picture(
            "scale-length.svg", "Cost of a turn by session length, in microseconds", [Curve("fold", length)],
            title="Cost of a turn by the length of its session", x_label="turn of the session", y_label="µs per turn",
            limit=limit,
        ),
        *curve_picture(
            "scale-sessions.svg", "Cost of a turn by open sessions, in microseconds",
            [Curve("fold and table", points(rows, "sessions", "us_per_turn"))],
            title="Cost of a turn by the number of open sessions", x_label="open sessions", y_label="µs per turn",
        ),
        *curve_picture(
            "scale-memory.svg", "Memory by open sessions, in MiB", memory, log_y=True,
            title="Memory by the number of open sessions", x_label="open sessions", y_label="MiB",
        ),
        *curve_picture(
            "scale-workers.svg", "Turns per second by number of workers",
            [Curve("sessions role", points(measured.rows("workers"), "workers", "turns_per_s"))],
            title=f"Throughput by the number of workers{machine}", x_label="workers", y_label="turns per second",
        ),
    ]  # fmt: skip


def _recovery_rows(measured: PrintedResult) -> list[tuple[str, PrintedResult]]:
    return [(f"{number(row.number('keys'))} keys", row) for row in measured.rows("rows")]


def _recovery_picture(measured: PrintedResult) -> list[PagePicture]:
    named = _recovery_rows(measured)
    values = {
        label: [row.number(key) for _, row in named]
        for label, key in (("stock Faust", "stock_records_per_s"), ("Turntide", "records_per_s"))
    }
    series = [Series(label, rates) for label, rates in values.items() if any(rates)]
    title, rows = "State read back from the changelog", [name for name, _ in named]
    draw = partial(draw_grouped_bars, title=title, x_label="records per second", rows=rows, series=series)
    return [PagePicture("recovery.svg", "Changelog records read back per second", draw)] if series else []


def _milestones(measured: PrintedResult, most: int = 6) -> list[tuple[str, PrintedResult]]:
    """At most about so many of them, the last among them."""
    rows = measured.rows("milestones")
    step = -(-len(rows) // most) or 1
    return [("", row) for row in rows[::-1][::step][::-1]]


def _memory_picture(measured: PrintedResult) -> list[PagePicture]:
    rows = [row for _, row in _milestones(measured)]
    curves = [
        Curve(label, [(x, y) for x, y in points(rows, "seen", key) if x])
        for label, key in (("process", "rss_mb"), ("encoded state", "state_mb"))
    ]
    return curve_picture(
        "memory.svg", "Memory of the process by sessions seen, in MB", curves, log_x=False,
        title="Memory while sessions come and go", x_label="sessions seen", y_label="MB",
    )  # fmt: skip


def _kills_rows(measured: PrintedResult) -> list[tuple[str, PrintedResult]]:
    return [(CONTENDERS.get(name := row.text("contender"), name), row) for row in measured.rows("rows")]


def _kills_picture(measured: PrintedResult) -> list[PagePicture]:
    bars = []
    for name, row in _kills_rows(measured):
        wrong = [row.number(key) for key in _WRONG]
        if any(value is not None for value in wrong):
            bars.append(Bar(name, sum(value or 0.0 for value in wrong), ours=row.text("contender") == _OURS))
    return bar_picture(
        "kills.svg", "Turns lost or doubled and alerts missing or false, by contender", bars,
        title="What is wrong after the same kills", x_label="turns lost or doubled, alerts missing or false",
    )  # fmt: skip


def _chaos_runs(measured: PrintedResult) -> list[PrintedResult]:
    """The runs of a sweep; a single run is a sweep of one."""
    return measured.rows("runs") or ([measured] if measured.number("seed") is not None else [])


def _chaos_results(measured: PrintedResult) -> tuple[list[tuple[str, PrintedResult]], PrintedResult, int]:
    """A row for each seed, all together, and how many did not finish."""
    rows, finished, totals = [], list[PrintedResult](), {}
    for run in _chaos_runs(measured):
        result = run.part("result") or (run if run.number("kills") is not None else None)
        seed = number(run.number("seed"))
        rows.append((seed, result) if result else (f"{seed} (not finished)", PrintedResult({})))
        finished += [result] if result else []
    for key in dict.fromkeys(name for result in finished for name in result.numbers()):
        if values := [value for result in finished if (value := result.number(key)) is not None]:
            totals[key] = max(values) if key.startswith("worst") else sum(values)
    return rows, PrintedResult(totals), len(rows) - len(finished)


def _chaos_rows(measured: PrintedResult) -> list[tuple[str, PrintedResult]]:
    rows, total, _ = _chaos_results(measured)
    return [*rows, (f"all {len(rows)}", total)] if rows else []


def _chaos_said(measured: PrintedResult) -> list[str]:
    lengths = dict.fromkeys((run.number("minutes"), run.number("turns_per_s")) for run in _chaos_runs(measured))
    return [
        f"{number(minutes)} min at {number(turns_per_s)} turns/s a seed."
        for minutes, turns_per_s in lengths
        if minutes is not None and turns_per_s is not None
    ]


def _chaos_held(measured: PrintedResult) -> list[HeldFigure]:
    rows, total, unfinished = _chaos_results(measured)
    if not rows:
        return []
    found = held("chaos: seeds", len(rows), at_least=_SEEDS_AT_LEAST)
    found += held("chaos: runs that did not finish", unfinished, at_most=0)
    found += held("chaos: kills", total.number("kills"), at_least=_KILLS_AT_LEAST)
    for key in (*_WRONG, "differences"):
        found += held(f"chaos: {words(key)}", total.number(key), at_most=0)
    if (timeout_s := measured.number("session_timeout_s")) is not None:
        what = "chaos: worst alert delay after a kill (session time-out + 1 s)"
        worst_s = total.number("worst_alert_delay_after_kill_s")
        found += held(what, worst_s, at_most=timeout_s + _AFTER_TIMEOUT_S, unit="s")
    return found


def _topics_written(measured: PrintedResult) -> list[tuple[str, PrintedResult]]:
    rows = measured.rows("topics")
    return [(row.text("topic"), row) for row in rows if row.number("records_per_turn")]


def also_said(name: str, measured: PrintedResult) -> tuple[str, list[str]]:
    """What is said behind the first paragraph of a section, in the same, and in others."""
    match name:
        case "scale":
            return rounds(measured), _scale_said(measured)
        case "chaos":
            return "", _chaos_said(measured)
        case "recovery" if size := measured.number("value_bytes"):
            return f"A value has {number(size)} bytes.", []
        case "memory" if mb := measured.number("mb_per_10000_sessions"):
            return (
                f"10,000 open sessions of {number(measured.number('filled_turns'))} turns take {number(mb, 'MB')}.",
                [],
            )
    return "", []


FOUND_BY: Mapping[str, Rows] = {
    "recovery_rows": _recovery_rows,
    "topics_written": _topics_written,
    "milestones": _milestones,
    "kills_rows": _kills_rows,
    "chaos_rows": _chaos_rows,
}
"""Rows of tables in `sections.toml` that need more than keys."""
HELD: Mapping[str, Callable[[PrintedResult], list[HeldFigure]]] = {
    "scale": _scale_held,
    "chaos": _chaos_held,
}
PICTURES: Mapping[str, Callable[[PrintedResult], list[PagePicture]]] = {
    "recovery": _recovery_picture,
    "scale": _scale_pictures,
    "memory": _memory_picture,
    "kills": _kills_picture,
}
