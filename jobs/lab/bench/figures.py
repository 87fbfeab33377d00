"""Summaries of a benchmark's runs: medians, ratios of runs side by side, percentiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np
from msgspec import Struct

from models.errors import TurntideError

SESSIONS_ROLE = "sessions_role"
RATIO_OF = {
    "plain_fold": "ratio_plain_fold",
    "per_event_faust": "ratio_per_event_faust",
    "quix": "ratio_quix",
    "bytewax": "ratio_bytewax",
    "raw_read": "ratio_raw_read",
}
"""Contender → key under which the sessions role is compared with it."""


class BenchFailed(TurntideError):  # noqa: N818 - it says what happened
    """A run gave nothing that can be measured."""


class Timing(Struct, frozen=True):
    """Turns taken in a time, start-up left out."""

    turns: int
    seconds: float

    @property
    def turns_per_s(self) -> float:
        """Throughput.

        Raises:
            BenchFailed: Too few turns for a time to be seen.
        """
        if self.turns <= 0 or self.seconds <= 0:
            raise BenchFailed(f"{self.turns} turns in {self.seconds:g} s is no measurement: run with more turns")
        return self.turns / self.seconds


class Latency(Struct, frozen=True):
    """From the moment a turn was due to be sent to the receipt of the alert that it raised, milliseconds."""

    p50: float
    p99: float
    alerts: int
    """Alerts that were measured, over all runs."""


class Round(Struct, frozen=True):
    """One run of each contender over the same log, one after the other.

    Attributes:
        timings: Contender → its time; a contender that is not installed is missing.
        latencies_ms: Of each alert.
        changelog_bytes_per_turn: Of the sessions role.
        mb_per_10000_sessions: State of the sessions role.
        turn_bytes: Mean size of a turn's record value.
        stage_us_per_turn: Stage of the sessions role → microseconds per turn.
    """

    timings: dict[str, Timing]
    latencies_ms: list[float]
    changelog_bytes_per_turn: float
    mb_per_10000_sessions: float
    turn_bytes: float
    stage_us_per_turn: dict[str, float]


class Report(Struct, frozen=True):
    """Medians over rounds. A ratio is the sessions role's throughput divided by the contender's, round by round.

    Attributes:
        turns_per_s: Of the sessions role.
        mb_per_10000_sessions: Megabytes (10⁶) of state that the role keeps, without Python's own overhead.
        absolute_turns_per_s: Contender → throughput.
        stage_us_per_turn: Of the sessions role, by stage; `other` is what no stage covers.
        rounds: The figures of each round under the keys of this report; the percentiles as `alert_latency_ms_p50` and
            `alert_latency_ms_p99`, throughputs as `<contender>_turns_per_s`.
        spread: Each of these keys → smallest and largest over the rounds.
        load_average_at_start: Over the last minute, before anything was started.
    """

    turns_per_s: float
    ratio_plain_fold: float | None
    ratio_per_event_faust: float | None
    ratio_quix: float | None
    ratio_bytewax: float | None
    ratio_raw_read: float | None
    alert_latency_ms: Latency
    changelog_bytes_per_turn: float
    mb_per_10000_sessions: float
    turn_bytes: float
    absolute_turns_per_s: dict[str, float]
    stage_us_per_turn: dict[str, float]
    rounds: list[dict[str, float]]
    spread: dict[str, tuple[float, float]]
    runs: int
    turns: int
    load_average_at_start: float
    cpus: int


def ratio(ours: Sequence[Timing], theirs: Sequence[Timing]) -> float:
    """Median over rounds of our throughput divided by theirs in the same round.

    Pairing leaves out what slows a whole round, such as a busy machine.

    >>> ratio([Timing(100, 1.0), Timing(30, 1.0)], [Timing(50, 1.0), Timing(10, 1.0)])
    2.5
    """
    return median(a.turns_per_s / b.turns_per_s for a, b in zip(ours, theirs, strict=True))


def medians(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Median by name, over the rows that have it.

    >>> medians([{"a": 1.0}, {"a": 3.0, "b": 5.0}])
    {'a': 2.0, 'b': 5.0}
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: median(row[name] for row in rows if name in row) for name in names}


def latency(rounds: Sequence[Sequence[float]]) -> Latency:
    """Median over rounds of each round's percentiles (`numpy.percentile`, linear).

    Raises:
        BenchFailed: A round without an alert.
    """
    if not all(rounds):
        raise BenchFailed("no alert arrived in a run: look at the policy's `alerts.single_turn_risk`")
    p50, p99 = (median(float(np.percentile(values, q)) for values in rounds) for q in (50, 99))
    return Latency(p50=p50, p99=p99, alerts=sum(map(len, rounds)))


def figures_of(measured: Round) -> dict[str, float]:
    """One round's figures, under the keys that `Report.rounds` has."""
    rates = {name: timing.turns_per_s for name, timing in measured.timings.items()}
    one = latency([measured.latencies_ms])
    return {
        "turns_per_s": rates[SESSIONS_ROLE],
        **{key: rates[SESSIONS_ROLE] / rates[name] for name, key in RATIO_OF.items() if name in rates},
        "alert_latency_ms_p50": one.p50,
        "alert_latency_ms_p99": one.p99,
        "changelog_bytes_per_turn": measured.changelog_bytes_per_turn,
        "mb_per_10000_sessions": measured.mb_per_10000_sessions,
        **{f"{name}_turns_per_s": rate for name, rate in rates.items()},
    }


def summarise(rounds: Sequence[Round], *, turns: int, load_average: float, cpus: int) -> Report:
    """The report of all rounds.

    Raises:
        BenchFailed: A round in which too few turns or no alert were measured.
    """
    by_round = [figures_of(each) for each in rounds]
    middle = medians(by_round)
    return Report(
        turns_per_s=middle["turns_per_s"],
        **{key: middle.get(key) for key in RATIO_OF.values()},
        alert_latency_ms=latency([each.latencies_ms for each in rounds]),
        changelog_bytes_per_turn=middle["changelog_bytes_per_turn"],
        mb_per_10000_sessions=middle["mb_per_10000_sessions"],
        turn_bytes=median(each.turn_bytes for each in rounds),
        absolute_turns_per_s=medians([{n: t.turns_per_s for n, t in each.timings.items()} for each in rounds]),
        stage_us_per_turn=medians([each.stage_us_per_turn for each in rounds]),
        rounds=by_round,
        spread={key: spread(by_round, key) for key in middle},
        runs=len(rounds),
        turns=turns,
        load_average_at_start=load_average,
        cpus=cpus,
    )


def spread(rows: Sequence[Mapping[str, float]], key: str) -> tuple[float, float]:
    """Smallest and largest value of a key over the rows that have it.

    >>> spread([{"a": 2.0}, {"a": 1.0}, {}], "a")
    (1.0, 2.0)
    """
    values = [row[key] for row in rows if key in row]
    return min(values), max(values)
