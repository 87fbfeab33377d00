"""Risk points come inside of profiles, and are rows of a table of their own."""

from __future__ import annotations

from itertools import chain
from typing import Annotated

import numpy as np

from models.events import RiskPoint
from models.events.fields import AppId, EventId, SessionId, UserId, about
from streams.archive.rows import Rows


class RiskPointOfSession(RiskPoint, frozen=True, kw_only=True, gc=False):
    """One element of `ProfileUpdated.risk_points` with its session and the profile that brought it."""

    id: Annotated[EventId, about("Id of the profile that brought it.")]
    session_id: SessionId
    user_id: UserId
    app_id: AppId


OF_PROFILE = frozenset(("id", "session_id", "user_id", "app_id"))
"""What a point has of the profile that brought it."""


def risk_points(profiles: Rows) -> Rows:
    """The risk points of profiles as rows of their own, which the profiles own."""
    points, counts = Rows(), [len(profile.risk_points) for profile in profiles.events]  # type: ignore[attr-defined]
    whose = np.repeat(np.arange(len(counts)), counts).tolist()
    points.extend(
        list(chain.from_iterable(profile.risk_points for profile in profiles.events)),  # type: ignore[attr-defined]
        [profiles.partitions[row] for row in whose],
        [profiles.offsets[row] for row in whose],
        [profiles.appended_us[row] for row in whose],
        [0] * len(whose),
        owners=[profiles.events[row] for row in whose],
    )
    return points
