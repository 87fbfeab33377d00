"""The page's section about size: long sessions, many sessions, several workers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from jobs.lab.bench.page_parts import Measured, Picture, Section, Table, held, mebibytes, number, rounds
from jobs.shared.charts import Curve, Limit, draw_curves

_LONG_SESSION_RATIO = 1.3


def scale_section(measured: Measured) -> Section:
    """Cost by session length and by number of sessions, memory, and throughput by number of workers."""
    ratio = measured.number("ratio_long_session")
    what = f"cost of a turn, {_longest(measured)} to turn 10"
    said = [
        "The pure fold, a turn at a time, in one long session, and fold and table with many open sessions, in CPU "
        "time; then several workers on one backlog. " + rounds(measured),
        *_about_workers(measured),
        *measured.texts("notes"),
    ]
    return Section(
        title="Scale",
        said=said,
        held=held(what, ratio, at_most=_LONG_SESSION_RATIO, unit="×"),
        tables=[_lengths(measured), _populations(measured), _workers(measured)],
        pictures=[*_length_picture(measured), *_population_pictures(measured), *_workers_picture(measured)],
    )


def _longest(measured: Measured) -> str:
    turns = [row.number("turn") for row in measured.rows("session_length")]
    return f"turn {number(turns[-1])}" if turns else "the longest session"


def _about_workers(measured: Measured) -> list[str]:
    cpus, partitions = measured.number("cpus"), measured.number("partitions")
    if cpus is None or not measured.rows("workers"):
        return []
    shared = f" They share {number(partitions)} partitions." if partitions is not None else ""
    limit = (
        f"The machine has {number(cpus)} CPUs, and the broker uses them too: more workers than CPUs cannot be faster."
    )
    return [limit + shared]


def _lengths(measured: Measured) -> Table:
    rows = [
        (
            number(row.number("turn")),
            number(row.number("us_per_turn")),
            number(row.number("ratio"), "×"),
            number(row.number("state_bytes")),
        )
        for row in measured.rows("session_length")
    ]
    return Table(("turn of the session", "µs a turn", "to the first", "state, bytes"), rows)


def _populations(measured: Measured) -> Table:
    rows = [
        (
            number(row.number("sessions")),
            number(row.number("us_per_turn")),
            number(row.number("ratio"), "×"),
            number(mebibytes(row.number("memory_bytes"))),
            number(mebibytes(row.number("state_bytes"))),
            number(row.number("turns_each")),
        )
        for row in measured.rows("sessions")
    ]
    columns = ("open sessions", "µs a turn", "to 1,000", "memory, MiB", "of it encoded state, MiB", "turns each")
    return Table(columns, rows)


def _workers(measured: Measured) -> Table:
    rows = [
        (number(row.number("workers")), number(row.number("turns_per_s")), number(row.number("ratio"), "×"))
        for row in measured.rows("workers")
    ]
    return Table(("workers", "turns/s", "to one"), rows)


def _points(rows: Sequence[Measured], x: str, y: str, scale: float = 1.0) -> list[tuple[float, float]]:
    pairs = [(row.number(x), row.number(y)) for row in rows]
    return [(a, b * scale) for a, b in pairs if a is not None and b is not None]


def _length_picture(measured: Measured) -> list[Picture]:
    points = _points(measured.rows("session_length"), "turn", "us_per_turn")
    if not points:
        return []
    draw = partial(
        draw_curves,
        title="Cost of a turn by the length of its session",
        x_label="turn of the session",
        y_label="µs per turn",
        curves=[Curve("fold", points)],
        limit=Limit(_LONG_SESSION_RATIO * points[0][1], f"held to ≤ {_LONG_SESSION_RATIO:g} × the first"),
    )
    return [Picture("scale-length.svg", "Cost of a turn by session length, in microseconds", draw)]


def _population_pictures(measured: Measured) -> list[Picture]:
    rows = measured.rows("sessions")
    cost = _points(rows, "sessions", "us_per_turn")
    if not cost:
        return []
    memory = [
        Curve(label, points)
        for label, key in (("process", "memory_bytes"), ("encoded state", "state_bytes"))
        if (points := [(x, y) for x, y in _points(rows, "sessions", key, 1 / 2**20) if y > 0])
    ]
    draw_cost = partial(
        draw_curves,
        title="Cost of a turn by the number of open sessions",
        x_label="open sessions",
        y_label="µs per turn",
        curves=[Curve("fold and table", cost)],
    )
    pictures = [Picture("scale-sessions.svg", "Cost of a turn by open sessions, in microseconds", draw_cost)]
    if memory:
        draw_memory = partial(
            draw_curves, title="Memory by the number of open sessions", x_label="open sessions", y_label="MiB",
            curves=memory, log_y=True,
        )  # fmt: skip
        pictures.append(Picture("scale-memory.svg", "Memory by open sessions, in MiB", draw_memory))
    return pictures


def _workers_picture(measured: Measured) -> list[Picture]:
    points = _points(measured.rows("workers"), "workers", "turns_per_s")
    if not points:
        return []
    cpus = measured.number("cpus")
    machine = f", on {number(cpus)} CPUs" if cpus is not None else ""
    draw = partial(
        draw_curves,
        title=f"Throughput by the number of workers{machine}",
        x_label="workers",
        y_label="turns per second",
        curves=[Curve("sessions role", points)],
    )
    return [Picture("scale-workers.svg", "Turns per second by number of workers", draw)]
