"""From the highest scores of sessions to a threshold that keeps a target."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

from msgspec import structs

from models.policy import AppModes, ModePolicy
from models.policy.escalation import ModeThreshold

_STEPS = 10_000
"""Thresholds are whole ten-thousandths: what a file says is what was proposed."""


def threshold_for(highest: Sequence[float], allowed: int) -> float | None:
    """The lowest threshold that at most so many sessions reach; where scores are equal, fewer do.

    A session alerts only where a score of it reaches the threshold, so no more sessions than these can alert (beside
    single turns of a very high upstream risk, which ask for no threshold).

    Returns:
        None where every session may alert: nothing limits the threshold. 1 at most, so that sessions at a score of 1
        are still reached.

    >>> threshold_for([0.2, 0.9, 0.5, 0.4], 1), threshold_for([0.2, 0.9, 0.9, 0.4], 1), threshold_for([0.2], 1)
    (0.5001, 0.9001, None)
    >>> threshold_for([0.57], 0)
    0.5701
    """
    if allowed >= len(highest):
        return None
    just_below = sorted(highest, reverse=True)[allowed]
    steps = floor(just_below * _STEPS)
    # 0.57 * 10,000 is less than 5,700: one step more need not be above.
    while steps < _STEPS and steps / _STEPS <= just_below:
        steps += 1
    return steps / _STEPS


def moved(modes: ModePolicy, app_id: str, enter: float) -> ModePolicy:
    """The modes with another alert threshold, for one app, or for all that have none of their own.

    `elevated.leave` stays as far below `enter` as it was, and at least as high in proportion: a low threshold must not
    become one that is never left. `critical` keeps its place between `enter` and 1. `watch` gives way where it would
    lie above.
    """
    watch, elevated, critical = modes.thresholds(app_id)
    new_elevated = ModeThreshold(enter=enter, leave=_leave(elevated, enter))
    room = (1 - critical.enter) / (1 - elevated.enter) if elevated.enter < 1 else 0.0
    higher = round(1 - (1 - enter) * room, 4)
    new_critical = ModeThreshold(enter=higher, leave=max(_leave(critical, higher), new_elevated.leave))
    if app_id:
        own = AppModes(app_id=app_id, elevated=new_elevated, critical=new_critical)
        return structs.replace(modes, apps=(*(each for each in modes.apps if each.app_id != app_id), own))
    lower = ModeThreshold(enter=min(watch.enter, enter), leave=min(watch.leave, new_elevated.leave))
    return structs.replace(modes, watch=lower, elevated=new_elevated, critical=new_critical)


def _leave(present: ModeThreshold, enter: float) -> float:
    as_far = enter - (present.enter - present.leave)
    in_proportion = enter * present.leave / present.enter if present.enter else 0.0
    return round(min(enter, max(as_far, in_proportion)), 4)
