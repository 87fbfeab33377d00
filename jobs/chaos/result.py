"""What a run did and found."""

from __future__ import annotations

from msgspec import Struct

from streams.comparison import Difference


class Result(Struct, kw_only=True):
    """What a run did and found.

    Attributes:
        kills: Kill −9 of roles, broker and vector store.
        acts: How often each act was done.
        restarts: Roles that were started again, for whatever reason.
        turns: Distinct turns sent and acknowledged by the broker.
        lost: Turns missing from log, archive, a session's count or a user's memory.
        doubled: Turns twice in the archive or in a user's memory, or counted twice by a session.
        worst_alert_delay_s: From the broker's time of a turn to that of the alert it raised, outages included.
        worst_alert_delay_after_kill_s: The same after kills of session workers alone, from the last kill if that came
            after the turn (`jobs.chaos.delays`).
        alerts_after_kill: Alerts that the figure rests on.
        repeats: Outputs that came again with the same id; allowed.
        differences: All differences from the replay.
        counts: Where and of which kind they are.
        not_checked: Where → why nothing was compared there.
        examples: The first of each kind.
        seconds: Length of the whole run.
    """

    seed: int
    kills: int
    acts: dict[str, int]
    restarts: int
    turns: int
    lost: int
    doubled: int
    alerts: int
    alerts_missing: int
    alerts_false: int
    worst_alert_delay_s: float
    worst_alert_delay_after_kill_s: float
    alerts_after_kill: int
    repeats: int
    differences: int
    counts: dict[str, int]
    checked: dict[str, int]
    not_checked: dict[str, str]
    examples: list[Difference]
    seconds: float
