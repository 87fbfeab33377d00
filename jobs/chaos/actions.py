"""What is done to the roles and the broker, and when: a pure function of the seed."""

from __future__ import annotations

import random
from enum import StrEnum

from msgspec import Struct

SESSIONS = ("sessions-0", "sessions-1")
JOINER = "sessions-2"
"""A third worker, which joins and leaves."""
PLACES = (*SESSIONS, JOINER, "index", "archive")
"""Every process of the run; the name up to the dash is its role."""


class Act(StrEnum):
    """Kinds of harm."""

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


class Action(Struct, frozen=True):
    """One act.

    Attributes:
        at_s: Seconds after the beginning, rising.
        place: Whom it hits, one of `PLACES`; empty for the broker.
        lasts_s: How long a freeze or an outage lasts, seconds; else 0.
    """

    at_s: float
    act: Act
    place: str = ""
    lasts_s: float = 0.0


_WEIGHTS = {Act.KILL: 55, Act.FREEZE: 10, Act.STOP: 12, Act.JOIN_OR_LEAVE: 13, Act.BROKER: 10}
_VICTIMS = (*SESSIONS, *SESSIONS, "index", "archive")
_GAP_S = (0.5, 5.0)
_OUTAGE_S = (0.5, 6.0)
_BEYOND_TIMEOUT_S = (1.0, 4.0)


def plan(seed: int, *, seconds: float, session_timeout_s: float) -> list[Action]:
    """The acts of a run: the same for the same arguments. The first one is a kill, so that no run is without.

    Args:
        seed: Any number.
        seconds: Length of the run; no act begins later.
        session_timeout_s: Time-out of the consumer group.
    """
    rng = random.Random(f"actions {seed}")  # noqa: S311 - repeatable, not secret
    acts: list[Action] = []
    at_s = rng.uniform(*_GAP_S)
    while at_s < seconds or not acts:
        act = rng.choices([*_WEIGHTS], [*_WEIGHTS.values()])[0] if acts else Act.KILL
        acts.append(_action(rng, round(at_s, 3), act, session_timeout_s))
        at_s += rng.uniform(*_GAP_S)
    return acts


def _action(rng: random.Random, at_s: float, act: Act, session_timeout_s: float) -> Action:
    match act:
        case Act.BROKER:
            return Action(at_s, act, lasts_s=round(rng.uniform(*_OUTAGE_S), 3))
        case Act.JOIN_OR_LEAVE:
            return Action(at_s, act, JOINER)
        case Act.FREEZE:
            lasts_s = session_timeout_s + rng.uniform(*_BEYOND_TIMEOUT_S)
            return Action(at_s, act, rng.choice(_VICTIMS), round(lasts_s, 3))
        case _:
            return Action(at_s, act, rng.choice(_VICTIMS))
