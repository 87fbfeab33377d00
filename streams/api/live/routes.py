"""Routes of the live page's data: `/v1/live`, for operators; text only with the permission for it, and audited.

This module has the caller's permissions, the stream of server-sent events, and actions on alerts as in `turntide
alerts`; routes of sessions and searches are in `timeline` and `searching`. A session id may contain slashes, so it is
the end of a path.

Saved searches of alerts: filters under a name, for everybody who may read the app's alerts.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from http import HTTPStatus
from time import monotonic
from typing import Annotated, Any, TypeVar

import structlog
from msgspec import Meta, Struct, structs, to_builtins
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from models.events import AlertAcknowledged, AlertChanged, AlertLabelled, AlertTriaged, AppMemoriesChanged
from models.events.app import SearchSaved
from models.events.fields import Identifier
from models.events.saved_search import SavedSearch
from models.events.topics import TURNS
from models.risk.alerts import refusal
from streams.api.answers import answered
from streams.api.apps.messages import Pending, now_utc
from streams.api.apps.routes import AskedSpace, OfSpace
from streams.api.commands import EventWriter, SpaceCommands, read_only
from streams.api.live.board import LiveBoard
from streams.api.live.hub import Apps, Hub, ReaderPosition
from streams.api.live.known import KnownAlert
from streams.api.live.messages import Acknowledge, AllWritten, Label, LabelAll, Me, NamedAlert, Triage, Written
from streams.http.audit import note_ids
from streams.http.problems import Problem, invalid_field, not_found
from streams.http.route import Accepted, Group
from streams.http.security import caller
from streams.index.app_memory import AppMemoryIndex
from streams.kafka.records import input_record
from streams.observe.telemetry import metrics
from streams.settings.http import TokenRole

log = structlog.get_logger(__name__)

PING_S = 15.0
SEND_BYTES = 64 * 1024
"""Bytes written to the socket before waiting for it."""
_PING = b": ping\n\n"


class LiveStream(Response):
    """Event stream until the reader leaves, stalls or falls too far behind, or the hub ends.

    Args:
        hub: Source of the frames.
        apps: Apps that the reader may read; None for all.
        token: Name of the reader's token; empty without tokens.
        clock: Seconds, monotonic.
    """

    media_type = "text/event-stream"

    def __init__(self, hub: Hub, apps: Apps, *, token: str = "", clock: Callable[[], float] = monotonic) -> None:
        # No `Response.__init__`: it would give the answer a length.
        self.status_code = 200
        self.background = None
        self.body = b""
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"})
        del self.headers["content-length"]
        self._hub = hub
        self._apps = apps
        self._token = token
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            self._hub.require_room(self._token)
        except Problem as problem:
            await problem.response()(scope, receive, send)
            return
        with self._hub.watching(self._token) as place:  # nothing is waited for in between: no two take the last place
            await self._until_it_leaves(place, receive, send)

    async def _until_it_leaves(self, place: ReaderPosition, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send_events(place, send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
        if not sending.cancelled():
            sending.result()

    async def _send_events(self, at: ReaderPosition, send: Send) -> None:
        try:
            await self._send(send, {"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            sent_s = self._clock()
            while not self._hub.ended:
                ticked = self._hub.ticked
                step = self._hub.next(at, self._apps)
                if step is None:
                    self._drop("behind")
                    break
                at, content, again = step
                if content:
                    await self._give(send, content)
                    sent_s = self._clock()
                if not again and not await _within(ticked, sent_s + PING_S - self._clock()):
                    await self._give(send, _PING)
                    sent_s = self._clock()
            await self._send(send, {"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            self._drop("stalled")  # the answer is not finished: the server closes the connection

    async def _give(self, send: Send, content: bytes) -> None:
        for start in range(0, len(content), SEND_BYTES):
            body = content[start : start + SEND_BYTES]
            await self._send(send, {"type": "http.response.body", "body": body, "more_body": True})

    async def _send(self, send: Send, message: dict[str, object]) -> None:
        """Send a message.

        Raises:
            TimeoutError: The reader stalls.
        """
        async with asyncio.timeout(self._hub.stall_s):
            await send(message)

    def _drop(self, reason: str) -> None:
        metrics.counter("live_stream_drops_total").inc()
        log.debug("live_stream_dropped", reason=reason)


async def _within(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event was set in time."""
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


LIVE = Group("live", "Current sessions, alerts and roles; for operators.", prefix="/v1/live", role=TokenRole.OPERATOR)
_STREAM = (
    'event: changes\nid: 7\ndata: {"sessions":[],"gone":["order-4711"],"gone_sessions":[{"app_id":"shop",'
    '"session_id":"order-4711"}],"alerts":[]}\n\n'
)


class OfApp(Struct, frozen=True, kw_only=True):
    """A request about one app or all."""

    app_id: Annotated[Identifier, Meta(description="Filter by app. Default: all apps that the token reads.")] | None = (
        None
    )


class LiveData:
    """The caller's permissions, and the stream of changes.

    Args:
        hub: Source of changes.
        tokens: Whether this server needs tokens.
    """

    def __init__(self, hub: Hub, *, tokens: bool) -> None:
        self._hub = hub
        self._tokens = tokens

    @LIVE.get("/me", "describe_caller", role=TokenRole.READER)
    async def me(self) -> Me:
        """Return the caller and its permissions."""
        asked_by = caller()
        apps = None if asked_by.apps is None else sorted(asked_by.apps)
        return answered(Me, asked_by, role=asked_by.role.value, apps=apps, tokens=self._tokens)

    @LIVE.get("/stream", "stream_changes", lasting=True, also={LiveStream.media_type: _STREAM})
    async def stream(self, asked: OfApp) -> LiveStream:
        """Stream the current sessions, alerts and roles (`snapshot`, in parts), then changes (`changes`, `roles`)."""
        asked_by = caller()
        app = asked_by.app_of(asked.app_id)
        apps = asked_by.apps if app is None else frozenset({app})
        return LiveStream(self._hub, apps, token=asked_by.name if self._tokens else "")


MOST_CHARS = 1_000
"""Maximum length of a note or a reason."""


_Said = TypeVar("_Said", AlertAcknowledged, AlertTriaged, AlertLabelled)


AlertId = Annotated[Identifier, Meta(description="Id of the alert in the stream.")]


class AlertCommands:
    """Writes commands about alerts to `turns.v1` under the session's key, so that the session's fold orders them.

    Args:
        board: Known alerts.
        writer: Writer of events; None: this role takes no commands.
        now: Clock of the events.
    """

    def __init__(self, board: LiveBoard, writer: EventWriter | None, *, now: Callable[[], datetime] = now_utc) -> None:
        self._board = board
        self._writer = writer
        self._now = now

    @LIVE.post(
        "/alerts/{alert_id:path}/acknowledge", "acknowledge_alert", audits="acted", errors=(HTTPStatus.CONFLICT,)
    )
    async def acknowledge(self, body: Acknowledge, *, alert_id: AlertId) -> Accepted[Written]:
        """Acknowledge an alert. It is not sent again until it gets worse or is resolved.

        Raises:
            Problem: 404 no such alert of the session; 409 it is resolved; 422 the note is too long.
        """
        _require_short("note", body.note)
        return await self._say_of(alert_id, body, AlertAcknowledged, note=body.note)

    @LIVE.post("/alerts/{alert_id:path}/label", "label_alert", audits="acted")
    async def label(self, body: Label, *, alert_id: AlertId) -> Accepted[Written]:
        """Label an alert as correct or not. Back-tests and calibration use the latest label.

        Raises:
            Problem: 404 no such alert of the session; 422 the reason is too long.
        """
        _require_short("reason", body.reason)
        return await self._say_of(alert_id, body, AlertLabelled, escalating=body.label, reason=body.reason)

    @LIVE.post("/alerts/label", "label_alerts", audits="acted")
    async def label_all(self, body: LabelAll) -> Accepted[AllWritten]:
        """Label several alerts as correct or not.

        Raises:
            Problem: 404 a session has no such alert; 422 the reason is too long.
        """
        _require_short("reason", body.reason)
        said = await self._say(body.alerts, AlertLabelled, escalating=body.label, reason=body.reason)
        return Accepted(AllWritten(written=said))

    @LIVE.post("/alerts/triage", "triage_alerts", audits="acted", errors=(HTTPStatus.CONFLICT,))
    async def triage(self, body: Triage) -> Accepted[AllWritten]:
        """Assign, snooze or comment on alerts, or mark them as duplicates.

        A snoozed alert is sent again early only if it gets worse; a duplicate only if it becomes critical.

        Raises:
            Problem: 404 a session has no such alert; 409 one is resolved, and only a note is allowed; 422 no change,
                the note is too long, or the duplicated alert is not one of the app.
        """
        _require_short("note", body.note)
        news = {name: getattr(body, name) for name in ("assignee", "snoozed_until", "duplicate_of", "note")}
        if not body.note and {body.assignee, body.snoozed_until, body.duplicate_of} == {None}:
            raise invalid_field("note", "is empty: give note, assignee, snoozed_until or duplicate_of")
        return Accepted(AllWritten(written=await self._say(body.alerts, AlertTriaged, **news)))

    async def _say_of(
        self, alert_id: str, body: Acknowledge | Label, kind: type[_Said], **fields: Any
    ) -> Accepted[Written]:
        one = NamedAlert(alert_id=alert_id, session_id=body.session_id)
        return Accepted((await self._say([one], kind, **fields))[0])

    async def _say(self, named: Sequence[NamedAlert], kind: type[_Said], **fields: Any) -> list[Written]:
        """Write the same event for each alert, after all are checked."""
        if len(named) == 1:
            note_ids(to_builtins(named[0]).get)
        said: list[tuple[_Said, KnownAlert]] = []
        for each in named:
            alert = self._known(each.alert_id, each.session_id)
            names: dict[str, Any] = to_builtins(each) | {"app_id": alert.event.app_id, "by": caller().name}
            event = kind(**names, timestamp=self._now(), **fields)
            if not isinstance(event, AlertLabelled):
                _require_taken(alert.event, event, self._board.alert(fields.get("duplicate_of") or ""))
            said.append((event, alert))
        written = [await self._write(*each) for each in said]
        for event, _ in said:
            if isinstance(event, AlertLabelled):
                self._board.take_label(event.alert_id, escalating=event.escalating)
        return written

    def _known(self, alert_id: str, session_id: str) -> KnownAlert:
        """The alert, if the caller may see it.

        An alert of an erased session is unknown: a new event would store the session's name again.
        """
        found = self._board.alert(alert_id)
        if found is None or found.event.session_id != session_id or not caller().may_read(found.event.app_id):
            raise not_found(
                "the session has no such alert within live.window; `turntide alerts list` shows older alerts",
            )
        note_ids({"app_id": found.event.app_id}.get)
        return found

    async def _write(self, event: _Said, alert: KnownAlert) -> Written:
        if self._writer is None:
            raise read_only()
        # Where the session stands: its producer may partition otherwise than Turntide does.
        place = await self._writer.write(TURNS.name, input_record(event, alert.event.source.partition))
        log.info("alert_deed", deed=type(event).__name__, alert_id=event.alert_id, by=event.by)
        return answered(Written, place)


def _require_taken(alert: AlertChanged, said: AlertAcknowledged | AlertTriaged, other: KnownAlert | None) -> None:
    if (refused := refusal(alert, said, None if other is None else other.event)) is not None:
        if refused.field:
            raise invalid_field(refused.field, refused.why)
        raise Problem(HTTPStatus.CONFLICT, "resolved", refused.why)


def _require_short(field: str, text: str) -> None:
    if len(text) > MOST_CHARS:
        raise invalid_field(field, f"has more than {MOST_CHARS} characters")


MOST_APPS = 1_000


class SaveSearch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search to save, replacing one of the same title, or to delete."""

    app_id: Identifier
    search: SavedSearch
    kept: Annotated[bool, Meta(description="True: save the search; false: delete it.")] = True


class SearchOfApp(SavedSearch, frozen=True, kw_only=True):
    """A saved search with its app."""

    app_id: str


class SavedSearches(Struct, frozen=True, kw_only=True):
    """Saved searches, sorted by app and title."""

    searches: list[SearchOfApp]


class SearchRoutes:
    """Reads and writes saved searches, which are part of their app's memory.

    Args:
        apps: Reader of saved searches.
        commands: Writer of saved searches.
    """

    def __init__(self, apps: AppMemoryIndex, commands: SpaceCommands) -> None:
        self._apps = apps
        self._commands = commands

    @LIVE.get("/searches", "list_searches")
    async def listed(self, asked: OfApp) -> SavedSearches:
        """List the saved searches of alerts of one app, or of all apps that the token may read."""
        app = caller().app_of(asked.app_id)
        return _answer(await self._apps.spaces(MOST_APPS, app, user_id=""))

    @LIVE.put("/searches", "save_search", audits="acted", errors=(HTTPStatus.CONFLICT,))
    async def save(self, body: SaveSearch) -> SavedSearches | Accepted[Pending]:
        """Save a search of an app's alerts under its title, or delete it.

        Raises:
            Problem: 409 the app has the maximum number.
        """
        space = AskedSpace(OfSpace(app_id=body.app_id))
        command = SearchSaved(**space.command(now_utc()), search=body.search, kept=body.kept)
        result = await self._commands.carry_out(command)
        if result is None:
            raise space.pending(command.request_id)
        if result.outcome == "too_many":
            raise Problem(HTTPStatus.CONFLICT, "too_many", "the app has too many saved searches: delete one")
        return _answer(await self._apps.spaces(1, body.app_id, user_id=""))


def _answer(spaces: list[AppMemoriesChanged]) -> SavedSearches:
    by_app = sorted(spaces, key=lambda space: space.app_id)
    found = [SearchOfApp(app_id=space.app_id, **structs.asdict(each)) for space in by_app for each in space.searches]
    return SavedSearches(searches=found)
