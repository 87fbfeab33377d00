"""Whole conversations, their profile and their segments; older turns than the index keeps come from the archive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta, Struct

from models.events import ProfileUpdated, SegmentCompacted, SessionName
from models.events.fields import TurnNumber
from streams.api.answers import answered, without
from streams.api.sessions.turns import IndexedTurn, ReadSession, Waiting
from streams.archive.history import ArchivedTurn, ArchivedTurns
from streams.http.audit import note_given
from streams.http.problems import not_found
from streams.http.route import Group
from streams.http.security import caller
from streams.index.collections import OF_EVENTS
from streams.index.session_memory import SessionVectorMemory
from streams.ports import VectorStore

_HISTORY = Group("sessions", "Turns, segments and profile of one session.", prefix="/v1/sessions/{session_id:path}")
MOST_TURNS = 1_000


@without("risk_points")
class ProfileAnswer(ProfileUpdated, frozen=True, kw_only=True, tag=False):
    """The last risk profile of a session, written every few turns, at mode changes and at the end."""


class SessionApp(Struct, frozen=True, kw_only=True):
    """App of a session (app memory, `getAppIdForConversation`)."""

    session_id: str
    app_id: str


class SegmentAnswer(SegmentCompacted, frozen=True, kw_only=True, tag=False):
    """Summary of a range of turns of a session; both ends are inclusive."""


class SegmentedSession(Struct, frozen=True, kw_only=True):
    """A session in short: summaries of older parts and the turns since."""

    segments: list[SegmentAnswer]
    """Oldest first."""
    open_turns: list[IndexedTurn]
    """Turns since the last segment, in order of number."""


class HistoryTurn(IndexedTurn, frozen=True, kw_only=True):
    """A turn with the store it was read from."""

    stored: Literal["index", "archive"]


class MissingTurns(Struct, frozen=True, kw_only=True):
    """A range of turn numbers without turns in the page; both ends are inclusive."""

    first: int
    last: int
    why: Literal["released", "unknown"]
    """`released`: no longer in the index, and there is no archive to read. `unknown`: never received, erased, or not
    archived yet."""


class History(Struct, frozen=True, kw_only=True):
    """A page of turns in order of number."""

    turns: list[HistoryTurn]
    next: int | None
    """`first` of the next page; null: last page."""
    missing: list[MissingTurns]
    archive: bool
    """Whether an archive exists and was read."""


@dataclass(frozen=True)
class HistoryReader:
    """Routes over what is indexed of sessions, and the archive behind it.

    Args:
        store: Profiles and segments, for the caller.
        turns: What was said, as indexed.
        archive: Older turns; None: nowhere.
        waiting: Holds requests back until a turn is visible.
        keep_turns: The index keeps the newest so many numbers of a session.
        shown: How the index shows a text: what it masks is not read in the archive either.
    """

    store: VectorStore
    turns: SessionVectorMemory
    archive: ArchivedTurns | None
    waiting: Waiting
    keep_turns: int
    shown: Callable[[str], str] = str

    @_HISTORY.get("/profile", "get_session_profile", audits="text_read")
    async def profile(self, asked: ReadSession) -> ProfileAnswer:
        """Return the last risk profile of the session; `last_turn` is the last turn that it includes.

        Raises:
            Problem: 404, nothing is known of the session.
        """
        session = await self.waiting.session(self.turns, asked)
        found = await OF_EVENTS[ProfileUpdated].latest(self.store, session._asdict(), 1)
        if not found:
            raise not_found("no profile of this session is indexed: it is unknown, or too new")
        note_given([])
        return answered(ProfileAnswer, found[0])

    @_HISTORY.get("/app", "get_session_app")
    async def app(self, asked: ReadSession) -> SessionApp:
        """Return the app of a session.

        Raises:
            Problem: 404, no turn of the session is indexed; 422, several apps have one of this id.
        """
        session = await self.waiting.session(self.turns, asked)
        found = await self.turns.last_turns(session, 1)
        if not found:
            raise not_found("no turn of this session is indexed")
        return answered(SessionApp, found[0])

    @_HISTORY.get("/segments", "list_session_segments", audits="text_read")
    async def segments(
        self,
        asked: ReadSession,
        *,
        last: Annotated[int, Meta(ge=1, le=MOST_TURNS, description="Maximum number of items.")] = 20,
    ) -> SegmentedSession:
        """Return summaries of the session's segments, about five turns each, and the turns since the last segment."""
        session = await self.waiting.session(self.turns, asked)
        segments = await self.turns.segments(session, last)
        after = segments[-1].last_turn if segments else -1
        return SegmentedSession(
            segments=[answered(SegmentAnswer, each) for each in segments],
            open_turns=[answered(IndexedTurn, each) for each in await self.turns.turns_after(session, after)],
        )

    @_HISTORY.get("/history", "list_session_history", audits="text_read")
    async def history(
        self,
        asked: ReadSession,
        *,
        first: Annotated[TurnNumber, Meta(description="First turn number; `next` of the previous page.")] = 0,
        limit: Annotated[int, Meta(ge=1, le=MOST_TURNS, description="Maximum number of items.")] = 200,
    ) -> History:
        """Return all turns of the session in pages, from the index, and older ones from the archive."""
        return await self.page(await self.waiting.session(self.turns, asked), first, limit)

    async def page(self, session: SessionName, first: int, limit: int) -> History:
        """The same of a session that is at hand, `limit` turns from a number on.

        Raises:
            StoreUnavailable: The index or the archive does not answer.
        """
        kept = await self.turns.turns_after(session, first - 1)
        found = {turn.turn: answered(HistoryTurn, turn, stored="index") for turn in kept}
        older: list[ArchivedTurn] | None = None
        if self.archive is not None and caller().may_read(session.app_id) and _has_gap(first, list(found)):
            older = await self.archive.turns(session, first, limit + 1)
            for turn in older or []:
                shown = answered(HistoryTurn, turn, stored="archive", content=self.shown(turn.content))
                found.setdefault(turn.turn, shown)
        numbers = sorted(found)
        page, rest = numbers[:limit], numbers[limit:]
        newest = kept[-1].turn if kept else -1
        released = newest - self.keep_turns if older is None else -1
        return History(
            turns=[found[number] for number in page],
            next=rest[0] if rest else None,
            missing=list(_missing(first, page, released)),
            archive=older is not None,
        )


def _has_gap(first: int, numbers: Sequence[int]) -> bool:
    """Whether a run of numbers has one, or begins late; a conversation may begin with 0 or with 1.

    >>> _has_gap(0, [1, 2, 3]), _has_gap(0, [2]), _has_gap(5, [5, 7]), _has_gap(0, [])
    (False, True, True, True)
    """
    return not numbers or numbers[0] > max(first, 1) or numbers[-1] - numbers[0] >= len(numbers)


def _missing(first: int, numbers: Sequence[int], released: int) -> list[MissingTurns]:
    """Ranges without a turn, from where it was asked to the last one; up to `released` the index gave them up.

    >>> [(each.first, each.last, each.why) for each in _missing(0, [3, 5], released=1)]
    [(0, 1, 'released'), (2, 2, 'unknown'), (4, 4, 'unknown')]
    """
    found: list[MissingTurns] = []
    following = first if first or (numbers and numbers[0] != 1) else 1
    for number in numbers:
        if following <= min(released, number - 1):
            last = min(released, number - 1)
            found.append(MissingTurns(first=following, last=last, why="released"))
            following = last + 1
        if following < number:
            found.append(MissingTurns(first=following, last=number - 1, why="unknown"))
        following = number + 1
    return found
