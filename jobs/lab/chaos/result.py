"""Plan and result of a chaos run: faults, a pure function of the seed; differences from a replay; delays of alerts.

Delays are told with all faults and after kills alone.
"""

import random
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from time import monotonic
from typing import NamedTuple

from msgspec import Struct

from jobs.replay.comparison import Settled
from streams.oracle.comparison import Difference, DifferenceKind, turn_counts
from streams.oracle.followers import ARCHIVE_TURNS, INDEX, USERS_TURNS
from streams.oracle.replay import FOLDED, USERS

SESSIONS = ("sessions-0", "sessions-1")
JOINER = "sessions-2"
"""A third worker, which joins and leaves."""
MEMORY = "memory-0"
FOLLOWERS = ("enrich", "index", "archive")
PLACES = (*SESSIONS, JOINER, MEMORY, *FOLLOWERS)
"""Every process of the run; the name up to the dash is its role."""
REJECTING = tuple(topic.name for each in FOLDED for topic in (each.changelog, *each.outputs))
"""Topics that may refuse what the folding roles write, their states and outputs; without the prefix."""
REJECTING_USERS = frozenset(topic.name for topic in (USERS.changelog, *USERS.outputs))
"""Those of them that the memory role alone writes."""


class FaultKind(StrEnum):
    """Kinds of faults."""

    KILL = "kill"
    """Kill −9; the supervisor starts it again."""
    FREEZE = "freeze"
    """SIGSTOP beyond the session time-out, then SIGCONT: a zombie, for the other workers have taken over."""
    STOP = "stop"
    """Asked to stop; the supervisor starts it again."""
    JOIN_OR_LEAVE = "join_or_leave"
    """The third session worker joins, or leaves if it is there: a rebalance each time."""
    BROKER = "broker"
    """Kill −9 of the only broker, which comes back after some seconds."""
    VECTORS = "vectors"
    """The vector store is killed, hangs, or answers 503 for some seconds (`Outage`)."""
    REJECT = "reject"
    """For some seconds the broker refuses everything written to one topic of a folding role as too large."""


class Outage(StrEnum):
    """How the vector store fails."""

    KILLED = "killed"
    HANGS = "hangs"
    ERRORS = "errors"


class Action(Struct, frozen=True):
    """One act.

    Attributes:
        at_s: Seconds after the beginning, rising.
        place: What it hits: one of `PLACES`, an `Outage` of the vector store or a topic; empty for the broker.
        lasts_s: How long a freeze, an outage or a refusal lasts, seconds; else 0.
    """

    at_s: float
    act: FaultKind
    place: str = ""
    lasts_s: float = 0.0


_WEIGHTS = {
    FaultKind.KILL: 66,
    FaultKind.FREEZE: 6,
    FaultKind.STOP: 7,
    FaultKind.JOIN_OR_LEAVE: 6,
    FaultKind.BROKER: 5,
    FaultKind.VECTORS: 6,
    FaultKind.REJECT: 4,
}
_VICTIMS = (*SESSIONS, *SESSIONS, MEMORY, MEMORY, *FOLLOWERS)
_GAP_S = (0.3, 3.3)
OUTAGE_S = 6.0
"""Longest outage unless told otherwise."""
_SHORTEST_OUTAGE_RATIO = 1 / 12
_BEYOND_TIMEOUT_S = (1.0, 4.0)


def plan(
    seed: int,
    *,
    seconds: float,
    session_timeout_s: float,
    acts: Collection[FaultKind] = frozenset(FaultKind),
    outage_s: float = OUTAGE_S,
) -> list[Action]:
    """The acts of a run: the same for the same arguments. The first one is a kill, where kills are allowed.

    Args:
        seed: Any number.
        seconds: Length of the run; no act begins later.
        session_timeout_s: Time-out of the consumer group.
        acts: Kinds of faults to choose from, at least one.
        outage_s: Longest outage of broker and vector store, and longest refusal.
    """
    rng = random.Random(f"actions {seed}")  # noqa: S311 - repeatable, not secret
    weights = {act: weight for act, weight in _WEIGHTS.items() if act in acts}
    planned: list[Action] = []
    at_s = rng.uniform(*_GAP_S)
    while at_s < seconds or not planned:
        first = not planned and FaultKind.KILL in weights
        act = FaultKind.KILL if first else rng.choices([*weights], [*weights.values()])[0]
        planned.append(_action(rng, round(at_s, 3), act, session_timeout_s, outage_s))
        away_s = planned[-1].lasts_s if act is FaultKind.BROKER else 0.0  # the driver waits for it before the next act
        at_s += away_s + rng.uniform(*_GAP_S)
    return planned


def _action(rng: random.Random, at_s: float, act: FaultKind, session_timeout_s: float, outage_s: float) -> Action:
    outage = (outage_s * _SHORTEST_OUTAGE_RATIO, outage_s)
    match act:
        case FaultKind.BROKER:
            return Action(at_s, act, lasts_s=round(rng.uniform(*outage), 3))
        case FaultKind.VECTORS:
            return Action(at_s, act, rng.choice([*Outage]), round(rng.uniform(*outage), 3))
        case FaultKind.REJECT:
            return Action(at_s, act, rng.choice(REJECTING), round(rng.uniform(*outage), 3))
        case FaultKind.JOIN_OR_LEAVE:
            return Action(at_s, act, JOINER)
        case FaultKind.FREEZE:
            lasts_s = session_timeout_s + rng.uniform(*_BEYOND_TIMEOUT_S)
            return Action(at_s, act, rng.choice(_VICTIMS), round(lasts_s, 3))
        case _:
            return Action(at_s, act, rng.choice(_VICTIMS))


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
