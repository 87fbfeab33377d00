"""Delays of alerts, with all faults at work and after kills alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from jobs.lab.chaos.actions import REJECTING_USERS, SESSIONS, FaultKind

_AFTER_S = 1.0


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
