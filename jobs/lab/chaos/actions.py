"""Fault injection into the roles, the broker and the vector store: the plan, a pure function of the seed."""

from __future__ import annotations

import random
from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct

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
