"""The page's section about chaos: every seed of a sweep, and all together."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.lab.bench.page_parts import Held, Measured, Section, held, number, number_table, words

_KILLS_AT_LEAST = 200
_SEEDS_AT_LEAST = 20
_AFTER_TIMEOUT_S = 1.0
"""So much later than the session time-out may an alert come after a kill."""
_SAID = (
    "Every role, the broker and the vector store are killed, frozen and restarted at random under load, by a plan that "
    "follows from the seed; then state, outputs, archive and index are compared with a replay of the log. The delay "
    "after a kill is that of alerts which nothing but kills of session workers can have delayed, from the later of the "
    "turn and the last kill; 0 where there was none. With outages: of all alerts, from the turn."
)
_COLUMNS = {
    "kills": "kills",
    "turns": "turns",
    "lost": "lost",
    "doubled": "doubled",
    "alerts": "alerts",
    "alerts_missing": "missing",
    "alerts_false": "false",
    "repeats": "repeats, same id",
    "worst_alert_delay_after_kill_s": "worst alert delay after a kill, s",
    "worst_alert_delay_s": "with outages, s",
    "differences": "differences",
}
_WORST = ("worst_alert_delay_after_kill_s", "worst_alert_delay_s")


def chaos_section(measured: Measured) -> Section:
    """Every seed of a sweep, and all together; a single run is a sweep of one."""
    runs = measured.rows("runs") or ([measured] if measured.number("seed") is not None else [])
    rows = [(number(run.number("seed")), _result(run)) for run in runs]
    finished = [result for _, result in rows if result is not None]
    total = _total(finished)
    shown = [(seed if result else f"{seed} (not finished)", result or Measured({})) for seed, result in rows]
    return Section(
        title="Chaos",
        said=[_SAID, *_how(runs)],
        held=_held(measured, total, seeds=len(runs), unfinished=len(runs) - len(finished)),
        tables=[number_table("seed", _COLUMNS, [*shown, (f"all {len(runs)}", total)])] if runs else [],
    )


def _result(run: Measured) -> Measured | None:
    """What a run found; None if it could not be finished."""
    return run.part("result") or (run if run.number("kills") is not None else None)


def _total(results: Sequence[Measured]) -> Measured:
    totals = {}
    for key in _COLUMNS:
        values = [value for result in results if (value := result.number(key)) is not None]
        if values:
            totals[key] = max(values) if key in _WORST else sum(values)
    return Measured(totals)


def _how(runs: Sequence[Measured]) -> list[str]:
    lengths = dict.fromkeys((run.number("minutes"), run.number("turns_per_s")) for run in runs)
    return [
        f"{number(minutes)} min at {number(turns_per_s)} turns/s a seed."
        for minutes, turns_per_s in lengths
        if minutes is not None and turns_per_s is not None
    ]


def _held(measured: Measured, total: Measured, *, seeds: int, unfinished: int) -> list[Held]:
    if not seeds:
        return []
    found = held("chaos: seeds", seeds, at_least=_SEEDS_AT_LEAST)
    found += held("chaos: runs that did not finish", unfinished, at_most=0)
    found += held("chaos: kills", total.number("kills"), at_least=_KILLS_AT_LEAST)
    for key in ("lost", "doubled", "alerts_missing", "alerts_false", "differences"):
        found += held(f"chaos: {words(key)}", total.number(key), at_most=0)
    timeout_s = measured.number("session_timeout_s")
    if timeout_s is not None:
        what = "chaos: worst alert delay after a kill (session time-out + 1 s)"
        worst_s = total.number("worst_alert_delay_after_kill_s")
        found += held(what, worst_s, at_most=timeout_s + _AFTER_TIMEOUT_S, unit="s")
    return found
