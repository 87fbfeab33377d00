"""The page's sections about what stays right: memory over time, and peers under kills."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from jobs.lab.bench.page_parts import CONTENDERS, Held, Measured, Picture, Section, held, number, number_table, words
from jobs.shared.charts import Bar, Curve, draw_bars, draw_curves

_LEVEL_RATIO = 1.05
_KILLS_SAID = (
    "Each contender works on its own log of the same turns and is killed −9 at moments given by the seed. What its "
    "state and its alerts then say is counted against a replay of the log through the same fold. A turn is doubled "
    "each time that it was folded again; what was never committed is folded again after every kill."
)
_KILL_COLUMNS = {
    "kills": "kills",
    "turns": "turns",
    "lost": "lost",
    "doubled": "doubled",
    "alerts": "alerts",
    "alerts_missing": "missing",
    "alerts_false": "false",
    "repeats_same_id": "repeats, same id",
    "repeats_other_id": "repeats, other id",
    "crashes": "ended by itself",
}


def memory_section(measured: Measured) -> Section:
    """What is held while many sessions come and go."""
    milestones = measured.rows("milestones")
    said = "Sessions come and go through one partition; what is open at the same time stays bounded."
    per_10000 = number(measured.number("mb_per_10000_sessions"), "MB")
    turns = number(measured.number("filled_turns"))
    if per_10000 and turns:
        said += f" 10,000 open sessions of {turns} turns take {per_10000}."
    columns = {"seen": "seen", "open": "open", "remembered": "remembered", "state_mb": "state, MB", "rss_mb": "RSS, MB"}
    return Section(
        title="Memory",
        said=[said],
        held=held(
            "memory of the second half to its middle", measured.number("level_ratio"), at_most=_LEVEL_RATIO, unit="×"
        ),
        tables=[number_table("sessions", columns, [("", row) for row in _thinned(milestones)])],
        pictures=_memory_picture(milestones),
    )


def _thinned(rows: Sequence[Measured], most: int = 6) -> list[Measured]:
    """At most about so many of the rows, the last among them."""
    step = -(-len(rows) // most) or 1
    return list(rows[::-1][::step][::-1])


def _memory_picture(milestones: Sequence[Measured]) -> list[Picture]:
    curves = []
    for label, key in (("process", "rss_mb"), ("encoded state", "state_mb")):
        pairs = [(row.number("seen"), row.number(key)) for row in _thinned(milestones)]
        points = [(x, y) for x, y in pairs if x and y is not None]
        if points:
            curves.append(Curve(label, points))
    if not curves:
        return []
    draw = partial(
        draw_curves, title="Memory while sessions come and go", x_label="sessions seen", y_label="MB", curves=curves,
        log_x=False,
    )  # fmt: skip
    return [Picture("memory.svg", "Memory of the process by sessions seen, in MB", draw)]


def kills_section(measured: Measured) -> Section:
    """All durable contenders after the same kills."""
    rows = measured.rows("rows")
    named = [(CONTENDERS.get(name := row.text("contender"), name), row) for row in rows]
    ours = next((row for row in rows if row.text("contender") == "sessions_role"), None)
    figures: list[Held] = []
    if ours is not None:
        for key in ("lost", "doubled", "alerts_missing", "alerts_false", "repeats_other_id"):
            figures += held(f"sessions role under kills: {words(key)}", ours.number(key), at_most=0)
    return Section(
        title="Peers under the same kills",
        said=[_KILLS_SAID],
        held=figures,
        tables=[number_table("contender", _KILL_COLUMNS, named)],
        pictures=_kills_picture(named),
    )


def _kills_picture(named: Sequence[tuple[str, Measured]]) -> list[Picture]:
    bars = []
    for name, row in named:
        wrong = [row.number(key) for key in ("lost", "doubled", "alerts_missing", "alerts_false")]
        if any(value is not None for value in wrong):
            bars.append(Bar(name, sum(value or 0.0 for value in wrong), ours=row.text("contender") == "sessions_role"))
    if not bars:
        return []
    title = "What is wrong after the same kills"
    draw = partial(draw_bars, title=title, x_label="turns lost or doubled, alerts missing or false", bars=bars)
    return [Picture("kills.svg", "Turns lost or doubled and alerts missing or false, by contender", draw)]
