"""Result of a chaos run: differences from a replay, and delays of alerts with all faults and after kills alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from time import monotonic
from typing import NamedTuple

from msgspec import Struct

from jobs.lab.chaos.actions import REJECTING_USERS, SESSIONS, FaultKind
from jobs.replay.comparison import Settled
from streams.oracle.comparison import Difference, DifferenceKind, turn_counts
from streams.oracle.followers import ARCHIVE_TURNS, INDEX, USERS_TURNS

LOG = "log"
"""Where a turn that the broker acknowledged, but no longer has, is missing."""
_AFTER_S = 1.0


class Compared(Struct, kw_only=True):
    """What is left, compared with a replay of the logs.

    Attributes:
        turns: Distinct turns sent and acknowledged by the broker.
        lost: Turns missing from log, archive, a session's count or a user's memory.
        doubled: Turns twice in the archive or in a user's memory, or counted twice by a session.
        repeats: Outputs that came again with the same id; allowed.
        differences: All differences from the replay.
        counts: Where and of which kind they are.
        not_checked: Where → why nothing was compared there.
        examples: The first of each kind.
        seconds: Length of the whole run.
    """

    turns: int
    lost: int
    doubled: int
    repeats: int
    differences: int
    counts: dict[str, int]
    checked: dict[str, int]
    not_checked: dict[str, str]
    examples: list[Difference]
    seconds: float


class ChaosResult(Compared, kw_only=True):
    """What a run did and found.

    Attributes:
        kills: Kill −9 of roles, broker and vector store.
        acts: How often each act was done.
        restarts: Roles that were started again, for whatever reason.
        worst_alert_delay_s: From the broker's time of a turn to that of the alert it raised, outages included.
        worst_alert_delay_after_kill_s: The same after kills of session workers alone, from the last kill if that came
            after the turn (`delays`).
        alerts_after_kill: Alerts that the figure rests on.
    """

    seed: int
    kills: int
    acts: dict[str, int]
    restarts: int
    alerts: int
    alerts_missing: int
    alerts_false: int
    worst_alert_delay_s: float
    worst_alert_delay_after_kill_s: float
    alerts_after_kill: int


def compared(settled: Settled, sent: Collection[tuple[str, int]], began_s: float) -> Compared:
    """What was compared of a run that began at this time, `monotonic`; `sent` as in `_lost_and_doubled`."""
    lost, doubled = _lost_and_doubled(settled, sent)
    found = settled.comparison
    same = ("repeats", "differences", "counts", "checked", "not_checked", "examples")
    return Compared(
        turns=len(sent),
        lost=lost,
        doubled=doubled,
        **{name: getattr(found, name) for name in same},
        seconds=round(monotonic() - began_s, 1),
    )


def _lost_and_doubled(settled: Settled, sent: Collection[tuple[str, int]]) -> tuple[int, int]:
    """How many turns are missing somewhere, and how many are somewhere twice."""
    found = settled.comparison
    found.ids(LOG, {f"{s}, turn {t}" for s, t in sent}, {f"{s}, turn {t}" for _, s, t in settled.oracle.turn_keys})
    expected, counted = turn_counts(settled.oracle.entities), turn_counts(settled.state)
    off = [counted.get(name, 0) - expected.get(name, 0) for name in expected.keys() | counted.keys()]
    lost = sum(found.count(where, DifferenceKind.MISSING) for where in (LOG, ARCHIVE_TURNS, USERS_TURNS))
    doubled = sum(found.count(where, DifferenceKind.DOUBLED) for where in (ARCHIVE_TURNS, USERS_TURNS))
    doubled += found.count(INDEX, DifferenceKind.FALSE)
    return lost + sum(-n for n in off if n < 0), doubled + sum(n for n in off if n > 0)


class Fault(Struct, frozen=True):
    """What was done, by wall clock.

    Attributes:
        act: Its kind.
        place: What it hit.
        began_ms: When, ms since 1970.
        ended_ms: When a freeze, an outage or a refusal was over, or a stopped process had ended; a kill's is its
            beginning.
    """

    act: FaultKind
    place: str
    began_ms: int
    ended_ms: int


class AlertTimes(NamedTuple):
    """An alert: when the broker had the turn that raised it, and when the alert itself, ms since 1970."""

    turn_ms: int
    alert_ms: int

    @property
    def delay_s(self) -> float:
        """From one to the other, seconds."""
        return (self.alert_ms - self.turn_ms) / 1000


class Delays(Struct, frozen=True, kw_only=True):
    """The longest delays of a run, seconds; 0 without any alert.

    Attributes:
        worst_s: Of all alerts, whatever was being done.
        worst_after_kill_s: Of the alerts of `after_kill`, from the later of turn and last kill.
        after_kill: Number of alerts that kills of session workers delayed and nothing else can have.
    """

    worst_s: float
    worst_after_kill_s: float
    after_kill: int


def delays(alerts: Iterable[AlertTimes], faults: Sequence[Fault], *, session_timeout_s: float) -> Delays:
    """The longest delays.

    An alert counts as delayed by kills alone if, between its turn and itself or within the session time-out and a
    second before its turn, a session worker was killed −9, and if no harm of another kind was in progress between its
    turn and itself, nor had ended within two session time-outs before its turn: so long its rebalances may go on.
    What is done to other roles' workers, topics and to the vector store harms no alert and does not matter. Several
    kills count from the last one, for the figure says how soon alerts come again after a kill.
    """
    before_ms = int((session_timeout_s + _AFTER_S) * 1000)
    kills = sorted(fault.began_ms for fault in faults if fault.act is FaultKind.KILL and fault.place in SESSIONS)
    others = [fault for fault in faults if _delays_alerts(fault)]
    worst_s = worst_after_kill_s = 0.0
    counted = 0
    for raised in alerts:
        worst_s = max(worst_s, raised.delay_s)
        kill_ms = max((ms for ms in kills if raised.turn_ms - before_ms <= ms <= raised.alert_ms), default=None)
        if kill_ms is None or any(_touches(fault, raised, int(2000 * session_timeout_s)) for fault in others):
            continue
        counted += 1
        worst_after_kill_s = max(worst_after_kill_s, (raised.alert_ms - max(raised.turn_ms, kill_ms)) / 1000)
    return Delays(worst_s=round(worst_s, 3), worst_after_kill_s=round(worst_after_kill_s, 3), after_kill=counted)


def _delays_alerts(fault: Fault) -> bool:
    if fault.act in {FaultKind.BROKER, FaultKind.JOIN_OR_LEAVE}:
        return True
    if fault.act is FaultKind.REJECT:
        return fault.place not in REJECTING_USERS
    return fault.act in {FaultKind.FREEZE, FaultKind.STOP} and fault.place in SESSIONS


def _touches(fault: Fault, raised: AlertTimes, lasting_ms: int) -> bool:
    return fault.began_ms <= raised.alert_ms and fault.ended_ms >= raised.turn_ms - lasting_ms
