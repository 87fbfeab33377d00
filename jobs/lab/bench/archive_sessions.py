"""Sessions of many days, as arrays: how long each is, whose, when each turn comes, and how its risk goes."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

START = datetime(2026, 1, 5, tzinfo=UTC)
APPS = ("support", "tutor", "assistant", "writing", "planner")
_APP_SHARES = (0.35, 0.25, 0.2, 0.12, 0.08)
_SPREAD = 1.5
"""Of the logarithm of a session's length: half of the sessions have less than a third of the mean."""
_LONGEST_SHARE = 20
"""The longest session has so many times the mean."""
_SESSIONS_PER_USER = 4
_GAP_S, _GAP_SPREAD, _PAUSE_S, _PAUSE_SHARE = 20.0, 0.9, 5_400.0, 0.01
_DAY_S = 86_400

CALM, RISING, STEP, SPIKE, WAVE = range(5)
_SHAPE_SHARES = (0.86, 0.05, 0.03, 0.04, 0.02)
_STEP_AT, _SPIKE_HALF, _WAVES = 0.6, 0.03, 20
"""In shares of the session; a wave's radians over it."""
_HIGH_EVERY = 12
"""Every twelfth session that is not calm goes all the way: an alert in one session of a hundred."""


class Size(Struct, frozen=True):
    """How much is made.

    Attributes:
        sessions: Sessions.
        turns_per_session: Their mean.
        days: Days in which they begin.
        seed: The same seed, the same events.
    """

    sessions: int = 50_000
    turns_per_session: int = 400
    days: int = 28
    seed: int = 0

    @property
    def turns(self) -> int:
        """About so many are made."""
        return self.sessions * self.turns_per_session


class Sessions(Struct, frozen=True):
    """What is fixed of each session, `(n_sessions,)`, and of each turn in the order of time, `(n_turns,)`.

    Attributes:
        lengths: Turns of the session.
        users: Number of its user.
        apps: Index into `APPS`.
        shapes: How its risk goes.
        of: Whose turn it is.
        turns: Its number in the session.
        times_us: When, microseconds since 1970.
        risk: 0-1.
        level: What the risk is without its noise, 0-1.
    """

    lengths: NDArray[np.int64]
    users: NDArray[np.int64]
    apps: NDArray[np.int64]
    shapes: NDArray[np.int64]
    of: NDArray[np.int32]
    turns: NDArray[np.int32]
    times_us: NDArray[np.int64]
    risk: NDArray[np.float32]
    level: NDArray[np.float32]


def plan(size: Size) -> Sessions:
    """Lay out all sessions, seeded."""
    rng = np.random.default_rng(size.seed)
    n = size.sessions
    lengths = _lengths(size, rng)
    shapes = rng.choice(len(_SHAPE_SHARES), n, p=_SHAPE_SHARES)
    of = np.repeat(np.arange(n, dtype=np.int32), lengths)
    turns = (np.arange(len(of)) - np.repeat(np.cumsum(lengths) - lengths, lengths)).astype(np.int32)
    times_us = _times_us(size, rng, of, lengths)
    level = _level(shapes[of], turns / lengths[of], of)
    risk = np.clip(level + rng.normal(0, 0.04, len(of)), 0, 1).astype(np.float32)
    order = np.argsort(times_us, kind="stable")
    return Sessions(
        lengths=lengths,
        users=rng.integers(0, max(1, n // _SESSIONS_PER_USER), n),
        apps=rng.choice(len(APPS), n, p=_APP_SHARES),
        shapes=shapes,
        of=of[order],
        turns=turns[order],
        times_us=times_us[order],
        risk=risk[order],
        level=level[order],
    )


def _lengths(size: Size, rng: np.random.Generator) -> NDArray[np.int64]:
    drawn = rng.lognormal(0.0, _SPREAD, size.sessions)
    drawn = np.minimum(drawn / drawn.mean(), _LONGEST_SHARE)
    lengths: NDArray[np.int64] = np.maximum(2, drawn / drawn.mean() * size.turns_per_session).astype(np.int64)
    return lengths


def _times_us(
    size: Size, rng: np.random.Generator, of: NDArray[np.int32], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    # Most sessions begin in the middle of the day.
    begun_s = rng.integers(0, size.days, size.sessions) * _DAY_S + rng.normal(13.5, 3.5, size.sessions) % 24 * 3_600
    gaps_s = rng.lognormal(np.log(_GAP_S), _GAP_SPREAD, len(of))
    gaps_s += np.where(rng.random(len(of)) < _PAUSE_SHARE, rng.exponential(_PAUSE_S, len(of)), 0)
    spent_s = np.cumsum(gaps_s)
    first = np.cumsum(lengths) - lengths
    seconds = begun_s[of] + spent_s - spent_s[first][of]
    times: NDArray[np.int64] = int(START.timestamp()) * 1_000_000 + (seconds * 1_000_000).astype(np.int64)
    return times


def _level(shape: NDArray[np.int64], done: NDArray[np.float64], of: NDArray[np.int32]) -> NDArray[np.float32]:
    """Risk without its noise; `done` is the share of the session that is behind."""
    calm = 0.06 + 0.1 * ((of * 7_919) % 101) / 101
    # Few of those that are not calm go all the way.
    height = np.where(of % _HIGH_EVERY == 0, 0.8, 0.35)
    rise = np.select(
        [shape == RISING, shape == STEP, shape == SPIKE, shape == WAVE],
        [done, done > _STEP_AT, np.abs(done - 0.5) < _SPIKE_HALF, 0.5 - 0.5 * np.cos(done * _WAVES)],
        0.0,
    )
    level: NDArray[np.float32] = np.clip(calm + height * rise, 0, 1).astype(np.float32)
    return level
