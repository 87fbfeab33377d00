"""The risk mode: rises at once, falls late (hysteresis and a least stay)."""

from models.events import Mode
from models.policy import ModePolicy

_ORDER = tuple(Mode)
RANK = {mode: rank for rank, mode in enumerate(Mode)}
"""Order of the modes, calm is 0."""


def next_mode(mode: Mode, score: float, turns_in_mode: int, policy: ModePolicy, app_id: str = "") -> Mode:
    """The mode after a turn.

    A mode is entered when the score reaches its `enter`, also over several steps at once. It is left when the score is
    below its `leave` and it has lasted `dwell_turns`; then for the highest mode whose `leave` still holds.

    >>> policy = ModePolicy()
    >>> next_mode(Mode.CALM, 0.6, 0, policy), next_mode(Mode.ELEVATED, 0.5, 9, policy)
    (<Mode.ELEVATED: 'elevated'>, <Mode.ELEVATED: 'elevated'>)
    """
    thresholds = policy.thresholds(app_id)
    reached = sum([score >= threshold.enter for threshold in thresholds])
    rank = RANK[mode]
    if reached >= rank:
        return _ORDER[reached]
    if turns_in_mode < policy.dwell_turns:
        return mode
    held = sum([score >= threshold.leave for threshold in thresholds[:rank]])
    return _ORDER[max(held, reached)]
