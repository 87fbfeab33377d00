"""The page's section about speed: the sessions role beside its peers, alert latency, and what a turn costs by stage."""

from __future__ import annotations

from functools import partial

from jobs.lab.bench.page_parts import CONTENDERS, Held, Measured, Picture, Section, Table, held, number, rounds
from jobs.shared.charts import Bar, Limit, Series, draw_bars, draw_grouped_bars

_RATIO_AT_LEAST = {"plain_fold": 0.5, "per_event_faust": 5.0, "quix": 1.5}
"""What the sessions role's throughput, divided by the other's, is held to (design §8)."""
_LATENCY_MS_AT_MOST = {"p50": 15.0, "p99": 75.0}
_CHANGELOG_PER_TURN_BYTE = 2.0
_CHANGELOG_BESIDE_BYTES = 1_000.0

_BEFORE = (
    "`before` is the role before its dearest stages were worked on, and without topic memory, which is a third "
    "of the fold."
)


def stream_section(measured: Measured, before: Measured | None = None) -> Section:
    """Throughput, alert latency, and what a turn costs by stage.

    Args:
        measured: Of `turntide bench stream`.
        before: The same of an earlier state of the code, for the stages.
    """
    rates = measured.numbers("absolute_turns_per_s")
    how = (
        "All contenders take the same backlog, one after the other in each round. A ratio is the sessions role's "
        "throughput divided by the other's in the same round. "
    )
    return Section(
        title="Throughput and latency",
        said=[how + rounds(measured), *([_BEFORE] if before else [])],
        held=_stream_held(measured),
        tables=[_contenders(measured, rates), _latency(measured), _bytes(measured), _stages(measured, before)],
        pictures=[*_throughput_picture(rates), *_latency_picture(measured), *_stages_picture(measured, before)],
    )


def _stream_held(measured: Measured) -> list[Held]:
    found = []
    for name, bound in _RATIO_AT_LEAST.items():
        what = f"throughput to {CONTENDERS[name]}"
        found += held(what, measured.number(f"ratio_{name}"), at_least=bound, unit="×")
    for name, bound in _LATENCY_MS_AT_MOST.items():
        what = f"turn to alert, {name}, 500 turns/s"
        found += held(what, measured.number("alert_latency_ms", name), at_most=bound, unit="ms")
    turn_bytes = measured.number("turn_bytes")
    if turn_bytes is not None:
        bound = _CHANGELOG_PER_TURN_BYTE * turn_bytes + _CHANGELOG_BESIDE_BYTES
        written = measured.number("changelog_bytes_per_turn")
        found += held("changelog per turn (2 × the turn + 1 KB)", written, at_most=bound, unit="bytes")
    return found


def _contenders(measured: Measured, rates: dict[str, float]) -> Table:
    rows = []
    for name, rate in rates.items():
        rate_range = measured.pair("spread", f"{name}_turns_per_s")
        shown_range = f"{number(rate_range[0])} – {number(rate_range[1])}" if rate_range else ""
        ratio = number(measured.number(f"ratio_{name}"), "×")
        rows.append((CONTENDERS.get(name, name), number(rate), shown_range, ratio))
    return Table(("contender", "turns/s", "range", "sessions role is"), rows)


def _latency(measured: Measured) -> Table:
    p50, p99 = (measured.number("alert_latency_ms", name) for name in ("p50", "p99"))
    alerts = number(measured.number("alert_latency_ms", "alerts"))
    rows = [("turn to alert at 500 turns/s", number(p50), number(p99), alerts)] if p50 is not None else []
    return Table(("latency", "p50, ms", "p99, ms", "alerts"), rows)


def _bytes(measured: Measured) -> Table:
    figures = {
        "a turn's record, bytes": measured.number("turn_bytes"),
        "changelog per turn, bytes": measured.number("changelog_bytes_per_turn"),
        "state of 10,000 sessions, MB": measured.number("mb_per_10000_sessions"),
    }
    return Table(("size", ""), [(name, number(value)) for name, value in figures.items() if value is not None])


def _stage_names(now: dict[str, float], earlier: dict[str, float]) -> list[str]:
    return sorted(now | earlier, key=lambda name: -earlier.get(name, now.get(name, 0.0)))


def _stages(measured: Measured, before: Measured | None) -> Table:
    now = measured.numbers("stage_us_per_turn")
    earlier = before.numbers("stage_us_per_turn") if before else {}
    total, rows = sum(now.values()), []
    for name in _stage_names(now, earlier):
        share = f"{now.get(name, 0.0) / total:.0%}" if total else ""
        rows.append((name, number(earlier.get(name)), number(now.get(name)), share))
    if rows:
        rows.append(("all", number(sum(earlier.values())) if earlier else "", number(total), ""))
    return Table(("stage", "before, µs a turn", "µs a turn", "share"), rows)


def _throughput_picture(rates: dict[str, float]) -> list[Picture]:
    if not rates:
        return []
    bars = [
        Bar(CONTENDERS.get(name, name), rate, ours=name == "sessions_role")
        for name, rate in sorted(rates.items(), key=lambda item: -item[1])
    ]
    draw = partial(draw_bars, title="Throughput on one backlog", x_label="turns per second", bars=bars)
    return [Picture("throughput.svg", "Throughput of each contender, turns per second", draw)]


def _latency_picture(measured: Measured) -> list[Picture]:
    bars = []
    for name, bound in _LATENCY_MS_AT_MOST.items():
        value = measured.number("alert_latency_ms", name)
        if value is not None:
            bars.append(Bar(name, value, Limit(bound, f"held to ≤ {bound:g}")))
    if not bars:
        return []
    draw = partial(draw_bars, title="From a turn to the alert it raises, at 500 turns/s", x_label="ms", bars=bars)
    return [Picture("latency.svg", "Alert latency, p50 and p99, beside what they are held to", draw)]


def _stages_picture(measured: Measured, before: Measured | None) -> list[Picture]:
    now = measured.numbers("stage_us_per_turn")
    if not now:
        return []
    earlier = before.numbers("stage_us_per_turn") if before else {}
    names = _stage_names(now, earlier)
    series = [Series("now", [now.get(name) for name in names])]
    if earlier:
        series.insert(0, Series("before", [earlier.get(name) for name in names]))
    title = "What a turn costs the sessions role, by stage"
    draw = partial(draw_grouped_bars, title=title, x_label="µs per turn", rows=names, series=series)
    return [Picture("stages.svg", "Microseconds per turn of each stage", draw)]
