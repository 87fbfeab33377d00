"""A session's turns: the ones like a text, and the last ones; which session a request means; waiting for a turn.

A session id is any 1-256 characters, unique within its app alone: paths let an encoded slash through.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import Annotated, Protocol

from msgspec import Meta, Struct, field

from models.events import DEFAULT_APP, SessionName, UserMemoryChanged
from models.events.base import Role
from models.events.fields import Identifier, MessageId, TurnNumber
from streams.api.answers import answered, without
from streams.api.users.messages import DEFAULT_WAIT_MS, MAX_QUERY_CHARS, MAX_WAIT_MS, After, From, To, between
from streams.gateway.visible import NumberedMessage
from streams.http.audit import note_ids
from streams.http.limits import extend_deadline
from streams.http.problems import Problem, invalid_field, unavailable
from streams.http.route import Group
from streams.http.security import caller
from streams.index.collections import RememberedTurn
from streams.index.session_memory import SessionVectorMemory
from streams.index.user_memory import UserMemory

SessionId = Annotated[Identifier, Meta(description="URL-encoded; any character.")]
AppOfSession = Annotated[
    Identifier,
    Meta(
        description="The session's app. Default: the token's only app, else the default app if it has such a session, "
        "else the only app that has one."
    ),
]


class OfSession(Struct, frozen=True, kw_only=True):
    """A question about a session."""

    session_id: SessionId
    app_id: AppOfSession | None = None


class ReadSession(OfSession, frozen=True, kw_only=True):
    """A question about a session, which may be asked to wait for one of its turns."""

    after_turn: (
        Annotated[TurnNumber, Meta(description="Wait until this turn and all derived data are in memory.")] | None
    ) = None
    after_message: Annotated[MessageId, Meta(description="The same by message id; both: wait for both.")] | None = None
    timeout_ms: Annotated[int, Meta(ge=0, le=MAX_WAIT_MS, description="Longest wait, then 504.")] = DEFAULT_WAIT_MS


class KnowsSessions(Protocol):
    """A memory of sessions."""

    async def app_of(self, session_id: str) -> str | None:
        """App that a session id means where none is named: the default app's, or else the only one; None for none.

        Raises:
            AmbiguousApp: Several other apps have a session of this id.
        """
        ...


async def session_of(memory: KnowsSessions, session_id: str, app_id: str | None) -> SessionName:
    """The session that a request is about; the audit notes its app.

    Args:
        memory: Gives what the caller may read.
        session_id: As the request names it.
        app_id: Likewise; None for none.

    Raises:
        Problem: 403, another tenant's app.
        AmbiguousApp: Several apps that the caller may read have a session of this id.
    """
    app = caller().app_of(app_id) or await memory.app_of(session_id)
    note_ids({"app_id": app}.get)
    return SessionName(app or DEFAULT_APP, session_id)


_SESSIONS = Group("sessions", "Turns, segments and profile of one session.", prefix="/v1")

SoughtText = Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_CHARS, description="Search text.")]


class SimilarTurns(ReadSession, frozen=True, kw_only=True):
    """A question for turns like a text."""

    q: SoughtText
    top_k: Annotated[int, Meta(ge=1, le=100, description="Maximum number of items.")] = 5
    since: From | None = field(default=None, name="from")
    until: To | None = field(default=None, name="to")


@without("metadata", "type")
class IndexedTurn(RememberedTurn, frozen=True, kw_only=True):
    """A turn of a session with its risk and index data."""


class WaitForTurns(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request to wait for turns of a session, by message id."""

    session_id: Identifier
    app_id: AppOfSession | None = None
    message_ids: Annotated[list[MessageId], Meta(min_length=1, max_length=1_000)]
    timeout_ms: Annotated[int, Meta(ge=0, le=MAX_WAIT_MS)] = DEFAULT_WAIT_MS


class IndexAnswer(Struct, frozen=True, kw_only=True):
    """State of an index. The prefix distinguishes roles on the same machine."""

    topic_prefix: str
    """Prefix of the indexed topics."""
    turns: int
    """Number of turns in all sessions that the caller may read."""


class SessionReader:
    """Routes over one vector memory. An unknown session has no turns; it is no error. See `session_of` for its app.

    Args:
        memory: What is indexed.
        topic_prefix: Of the topics that are.
        users: What follows from turns.
        waiting: Holds requests back until a turn is visible.
    """

    def __init__(self, memory: SessionVectorMemory, users: UserMemory, *, topic_prefix: str, waiting: Waiting) -> None:
        self._memory = memory
        self._users = users
        self._waiting = waiting
        self._topic_prefix = topic_prefix

    @_SESSIONS.get("/sessions/{session_id:path}/similar", "find_similar_turns", audits="text_read")
    async def similar(self, asked: SimilarTurns) -> list[IndexedTurn]:
        """Return the turns of the session most similar to `q`, best match first."""
        session = await self._waiting.session(self._memory, asked)
        found = await self._memory.find_similar(asked.q, session, asked.top_k, between(asked.since, asked.until))
        return [answered(IndexedTurn, turn) for turn in found]

    @_SESSIONS.get("/sessions/{session_id:path}/turns", "list_session_turns", audits="text_read")
    async def turns(
        self,
        asked: ReadSession,
        *,
        last: Annotated[int, Meta(ge=1, le=1_000, description="Maximum number of items.")] = 10,
    ) -> list[IndexedTurn]:
        """List the newest turns of the session, oldest first."""
        session = await self._waiting.session(self._memory, asked)
        return [answered(IndexedTurn, turn) for turn in await self._memory.last_turns(session, last)]

    @_SESSIONS.post("/turns/wait", "wait_for_turns")
    async def wait(self, body: WaitForTurns) -> list[NumberedMessage]:
        """Wait until all turns and everything derived from them are in memory, and return their numbers.

        Raises:
            Problem: 504 `turn_not_visible`, not in time; 503 too many wait already.
        """
        session = await session_of(self._memory, body.session_id, body.app_id)
        extend_deadline(body.timeout_ms / 1_000)
        numbers: dict[str, int] = {}

        async def all_are_visible() -> bool:
            missing = [each for each in body.message_ids if each not in numbers]
            for turn in await self._memory.turns_of_messages(session, missing):
                if is_remembered(turn, await self._users.stats(turn.app_id, turn.user_id)):
                    numbers[turn.message_id or ""] = turn.turn
            return numbers.keys() >= set(body.message_ids)

        await self._waiting.while_not(all_are_visible, body.timeout_ms)
        return [NumberedMessage(message_id=each, turn=numbers[each]) for each in dict.fromkeys(body.message_ids)]

    @_SESSIONS.get("/index", "describe_index")
    async def index(self) -> IndexAnswer:
        """Return the number of indexed turns that the caller may read, and the topic prefix."""
        return IndexAnswer(topic_prefix=self._topic_prefix, turns=await self._memory.count())


POLL_S = 0.02
MAX_WAITING = 32
"""Requests that wait at once: half of `http.max_concurrent_requests`, so that waiters never shut out the others."""

_USERS_ROLES = frozenset({Role.USER, Role.ASSISTANT})
_NEVER_SEEN = -1


async def is_visible(turns: SessionVectorMemory, users: UserMemory, app_id: str | None, after: After) -> bool:
    """Whether readers find a turn and all that follows from it: its point, and its offset in its user's memory.

    A turn of another role than user or assistant is no part of a user's memory, and one whose point does not say
    where it stands in the log was indexed before points did: for both the point is enough.
    """
    session = await session_of(turns, after.session_id, app_id)
    if after.turn is not None:
        found = await turns.turns_numbered(session, [after.turn])
    else:
        found = await turns.turns_of_messages(session, [after.message_id or ""])
    if not found:
        return False
    return is_remembered(found[0], await users.stats(found[0].app_id, found[0].user_id))


def is_remembered(said: RememberedTurn, stands: UserMemoryChanged | None) -> bool:
    """Whether an indexed turn is in its user's memory, as far as that stands; see `is_visible`."""
    if said.role not in _USERS_ROLES or said.partition is None or said.event_offset is None:
        return True
    return stands is not None and stands.seen.get(str(said.partition), _NEVER_SEEN) >= said.event_offset


class Waiting:
    """Holds requests back until a turn is visible.

    Args:
        visible: Whether a turn of an app's session is, with all that follows from it.
        clock: Seconds, never going back.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        visible: Callable[[str | None, After], Awaitable[bool]],
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
            Problem: 504 after `timeout_ms`; 503 if too many wait already; 422 if no turn is named, or two.
        """
        if (after.turn is None) == (after.message_id is None):
            raise invalid_field("after", "must have `turn` or `message_id`")
        await self.while_not(partial(self._visible, app_id, after), after.timeout_ms)

    async def session(self, memory: KnowsSessions, asked: ReadSession) -> SessionName:
        """The session that a question is about, once the turns that it waits for are visible, if any.

        Raises:
            Problem: As of `while_not`, and of `session_of`.
        """
        named = [(asked.after_turn, None), (None, asked.after_message)]
        waited = [After(asked.session_id, turn, message_id=by_id) for turn, by_id in named if turn is not None or by_id]

        async def all_are_visible() -> bool:
            return all([await self._visible(asked.app_id, each) for each in waited])

        if waited:
            extend_deadline(asked.timeout_ms / 1_000)
            await self.while_not(all_are_visible, asked.timeout_ms)
        return await session_of(memory, asked.session_id, asked.app_id)

    async def while_not(self, visible: Callable[[], Awaitable[bool]], timeout_ms: int) -> None:
        """Return as soon as something is visible, likewise.

        Raises:
            Problem: 504 after `timeout_ms`; 503 if too many wait already.
        """
        end_s = self._clock() + timeout_ms / 1_000
        if await visible():
            return
        if self._waiting >= MAX_WAITING:
            raise unavailable(f"{MAX_WAITING} requests wait for a turn: repeat this one", code="too_many_waiting")
        self._waiting += 1
        try:
            while (left_s := end_s - self._clock()) > 0:
                await self._sleep(min(POLL_S, left_s))
                if await visible():
                    return
        finally:
            self._waiting -= 1
        raise Problem(
            HTTPStatus.GATEWAY_TIMEOUT,
            "turn_not_visible",
            f"the turn was not in memory after {timeout_ms} ms: check that it was sent with this session and number or "
            "id; /readyz and the metric turntide_offset_lag_records show the lag of the index",
        )
