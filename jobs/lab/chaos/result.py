"""Result of a chaos run: what it did and found."""

from __future__ import annotations

from collections.abc import Collection
from time import monotonic

from msgspec import Struct

from jobs.replay.comparison import Settled
from streams.oracle.comparison import Difference, DifferenceKind, turn_counts
from streams.oracle.followers import ARCHIVE_TURNS, INDEX, USERS_TURNS

LOG = "log"
"""Where a turn that the broker acknowledged, but no longer has, is missing."""


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
            after the turn (`jobs.lab.chaos.delays`).
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
    found.ids(LOG, {f"{s}, turn {t}" for s, t in sent}, {f"{s}, turn {t}" for s, t in settled.oracle.turn_keys})
    expected, counted = turn_counts(settled.oracle.entities), turn_counts(settled.state)
    off = [counted.get(name, 0) - expected.get(name, 0) for name in expected.keys() | counted.keys()]
    lost = sum(found.count(where, DifferenceKind.MISSING) for where in (LOG, ARCHIVE_TURNS, USERS_TURNS))
    doubled = sum(found.count(where, DifferenceKind.DOUBLED) for where in (ARCHIVE_TURNS, USERS_TURNS))
    doubled += found.count(INDEX, DifferenceKind.FALSE)
    return lost + sum(-n for n in off if n < 0), doubled + sum(n for n in off if n > 0)
