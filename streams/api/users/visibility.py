"""Read your own writes: whether a turn, and what follows from it, is in memory yet, and waiting until it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from time import monotonic

from models.events.base import Role
from streams.api.sessions.turns import session_of
from streams.api.users.messages import After
from streams.http.problems import Problem, unavailable
from streams.index.session_memory import SessionVectorMemory
from streams.index.user_memory import UserMemory

POLL_S = 0.02
MAX_WAITING = 32
"""Requests that wait at once: half of `http.max_concurrent_requests`, so that waiters never shut out the others."""

_USERS_ROLES = frozenset({Role.USER, Role.ASSISTANT})
_NEVER_SEEN = -1


async def is_visible(
    turns: SessionVectorMemory, users: UserMemory, app_id: str | None, session_id: str, turn: int
) -> bool:
    """Whether readers find a turn and all that follows from it: its point, and its offset in its user's memory.

    A turn of another role than user or assistant is no part of a user's memory, and one whose point does not say
    where it stands in the log was indexed before points did: for both the point is enough.
    """
    found = await turns.turns_numbered(await session_of(turns, session_id, app_id), [turn])
    if not found:
        return False
    said = found[0]
    if said.role not in _USERS_ROLES or said.partition is None or said.event_offset is None:
        return True
    stats = await users.stats(said.app_id, said.user_id)
    return stats is not None and stats.seen.get(str(said.partition), _NEVER_SEEN) >= said.event_offset


class Waiting:
    """Holds requests back until a turn is visible.

    Args:
        visible: Whether a turn of an app's session is, with all that follows from it.
        clock: Seconds, never going back.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        visible: Callable[[str | None, str, int], Awaitable[bool]],
        *,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._visible = visible
        self._clock = clock
        self._sleep = sleep
        self._waiting = 0

    async def until(self, after: After, app_id: str | None = None) -> None:
        """Return as soon as the turn is visible; it is looked at least once.

        Args:
            after: The turn.
            app_id: Whose; None: as `session_of` says.

        Raises:
            Problem: 504 after `timeout_ms`; 503 if too many wait already.
        """
        end_s = self._clock() + after.timeout_ms / 1_000
        if await self._visible(app_id, after.session_id, after.turn):
            return
        if self._waiting >= MAX_WAITING:
            raise unavailable(f"{MAX_WAITING} requests wait for a turn already", code="too_many_waiting")
        self._waiting += 1
        try:
            while (left_s := end_s - self._clock()) > 0:
                await self._sleep(min(POLL_S, left_s))
                if await self._visible(app_id, after.session_id, after.turn):
                    return
        finally:
            self._waiting -= 1
        raise Problem(
            HTTPStatus.GATEWAY_TIMEOUT,
            "turn_not_visible",
            f"the turn was not in memory after {after.timeout_ms} ms: was it sent, with this session and number? "
            "/readyz and the metric turntide_offset_lag_records say how far the index is",
        )
