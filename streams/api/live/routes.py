"""Data of the live page: `/v1/live`, for operators; text only with the permission for it, and audited.

A session id may hold slashes, so it ends a path: text has a path of its own.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from models.events.fields import Identifier
from streams.api.live import stream
from streams.api.live.deeds import AlertDeeds
from streams.api.live.hub import Hub
from streams.api.live.messages import Acknowledge, Hits, Label, Me, Said, SearchKind, Timeline, Written
from streams.api.live.searching import LiveSearch
from streams.api.live.timeline import TimelineReader
from streams.api.sessions.turns import SessionId
from streams.api.users.messages import MAX_QUERY_CHARS
from streams.http.audit import note
from streams.http.route import Accepted, Group
from streams.http.security import caller
from streams.settings.http import TokenRole

_LIVE = Group(
    "live", "Sessions, alerts and roles as they are now, for operators.", prefix="/v1/live", role=TokenRole.OPERATOR
)
_NOT_FOUND = (HTTPStatus.NOT_FOUND,)
_STREAM = 'event: changes\nid: 7\ndata: {"sessions":[],"gone":["order-4711"],"alerts":[]}\n\n'


class OfApp(Struct, frozen=True, kw_only=True):
    """A request about one app or all."""

    app_id: Annotated[Identifier, Meta(description="Only of this app; none: of all that the token reads.")] | None = (
        None
    )


class SearchLive(OfApp, frozen=True, kw_only=True):
    """A request for what answers a query."""

    q: Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_CHARS, pattern=r"\S", description="What to look for.")]
    kind: Annotated[SearchKind, Meta(description="Among what.")] = "turns"
    limit: Annotated[int, Meta(ge=1, le=100, description="How many at most.")] = 20


class SaidTurns(Struct, frozen=True, kw_only=True):
    """A request for what was said."""

    session_id: SessionId
    first: Annotated[int, Meta(ge=0, le=2**53, description="Number of the first turn.")] = 0
    last: Annotated[int, Meta(ge=0, le=2**53, description="Number of the last turn, at most 999 on.")] = 199


class OfTimeline(Struct, frozen=True, kw_only=True):
    """A request for a session."""

    session_id: SessionId
    text: Annotated[
        bool,
        Meta(description="Also titles of topics, values of facts, summaries: takes the permission, and is audited."),
    ] = False


class OfAlert(Struct, frozen=True, kw_only=True):
    """A request about an alert."""

    alert_id: Annotated[Identifier, Meta(description="As the stream has it.")]


class LiveParts(NamedTuple):
    """What the routes ask.

    Attributes:
        tokens: Whether this server asks for tokens.
    """

    hub: Hub
    timelines: TimelineReader
    search: LiveSearch
    deeds: AlertDeeds
    tokens: bool


class LiveData:
    """Routes of the live page's data.

    Args:
        parts: What they ask.
    """

    def __init__(self, parts: LiveParts) -> None:
        self._parts = parts

    @_LIVE.get("/me", "describe_caller", role=TokenRole.READER)
    async def me(self) -> Me:
        """Who asks, and what they may."""
        asked_by = caller()
        apps = None if asked_by.apps is None else sorted(asked_by.apps)
        tokens = self._parts.tokens
        return Me(name=asked_by.name, role=asked_by.role.value, text=asked_by.text, apps=apps, tokens=tokens)

    @_LIVE.get("/stream", "stream_changes", lasting=True, also={stream.LiveStream.media_type: _STREAM})
    async def stream(self, asked: OfApp) -> stream.LiveStream:
        """Sessions, alerts and roles as they are (`snapshot`, in pieces), then what changes (`changes`, `roles`)."""
        asked_by = caller()
        app = asked_by.app_of(asked.app_id)
        apps = asked_by.apps if app is None else frozenset({app})
        return stream.LiveStream(self._parts.hub, apps, token=asked_by.name if self._parts.tokens else "")

    @_LIVE.get("/search", "search_live", audits="text_read")
    async def search(self, asked: SearchLive) -> Hits:
        """Turns, episodes, facts of users or memories of apps that answer a query, best first; with their text."""
        return await self._parts.search.find(caller(), asked.q, asked.kind, asked.app_id, asked.limit)

    @_LIVE.get("/texts/{session_id:path}", "list_session_texts", audits="text_read")
    async def text(self, asked: SaidTurns) -> Said:
        """What was said in a session; turns that are not indexed (any more) are left out."""
        return await self._parts.timelines.said(asked.session_id, asked.first, asked.last)

    @_LIVE.get("/sessions/{session_id:path}", "get_session_timeline", errors=_NOT_FOUND)
    async def timeline(self, asked: OfTimeline) -> Timeline:
        """One session: turns, modes, segments, topics, facts, episodes, alerts with their grounds."""
        asked_by = note("text_read") if asked.text else caller()
        return await self._parts.timelines.timeline(asked_by, asked.session_id, text=asked.text)

    @_LIVE.post(
        "/alerts/{alert_id:path}/acknowledge",
        "acknowledge_alert",
        audits="acted",
        errors=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
    )
    async def acknowledge(self, asked: OfAlert, body: Acknowledge) -> Accepted[Written]:
        """Say that somebody looks at an alert: it is not repeated until it grows worse or is resolved."""
        return Accepted(await self._parts.deeds.acknowledge(caller(), asked.alert_id, body))

    @_LIVE.post("/alerts/{alert_id:path}/label", "label_alert", audits="acted", errors=_NOT_FOUND)
    async def label(self, asked: OfAlert, body: Label) -> Accepted[Written]:
        """Say whether an alert was right; back-tests and calibration measure by it, and the latest label counts."""
        return Accepted(await self._parts.deeds.label(caller(), asked.alert_id, body))
