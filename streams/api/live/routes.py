"""Data of the live page: `/v1/live`, for operators; text only with the permission for it, and audited.

A session id may hold slashes, so it ends a path: text has a path of its own.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, NamedTuple

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response

from streams.api import openapi
from streams.api.live import examples, stream
from streams.api.live.deeds import AlertDeeds
from streams.api.live.hub import Hub
from streams.api.live.messages import Acknowledge, Hits, Label, Me, Said, SearchKind, Timeline, Written
from streams.api.live.searching import LiveSearch
from streams.api.live.timeline import TimelineReader
from streams.api.users import examples as general
from streams.http.audit import ACTS, READS_TEXT, reads_text
from streams.http.bodies import json_answer, read_body
from streams.http.security import caller, require_operator

PREFIX = "/v1/live"

_SessionId = Annotated[
    str,
    Path(min_length=1, max_length=256, description="URL-encoded; any character.", examples=[general.SESSION_ID]),
]
_AlertId = Annotated[
    str, Path(min_length=1, max_length=256, description="As the stream has it.", examples=[examples.ALERT_ID])
]
_AppId = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=256,
        description="Only of this app; none: of all that the token reads.",
        examples=[general.APP_ID],
    ),
]
_Text = Annotated[
    bool,
    Query(
        description="Also titles of topics, values of facts, summaries: takes the permission, and is audited.",
        examples=[False],
    ),
]
_First = Annotated[int, Query(ge=0, le=2**53, description="Number of the first turn.", examples=[0])]
_Last = Annotated[int, Query(ge=0, le=2**53, description="Number of the last turn, at most 999 on.", examples=[199])]
_Query = Annotated[
    str,
    Query(min_length=1, max_length=8_000, pattern=r"\S", description="What to look for.", examples=[general.QUERY]),
]
_Kind = Annotated[SearchKind, Query(description="Among what.", examples=["turns"])]
_Limit = Annotated[int, Query(ge=1, le=100, description="How many at most.", examples=[20])]

_ACKNOWLEDGE = msgspec.json.Decoder(Acknowledge)
_LABEL = msgspec.json.Decoder(Label)


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


def live_router(parts: LiveParts) -> APIRouter:
    """Routes of the live page's data."""
    router = APIRouter(prefix=PREFIX, tags=["live"])
    _add_standing(router, parts)
    _add_sessions(router, parts)
    _add_deeds(router, parts.deeds)
    return router


def _add_standing(router: APIRouter, parts: LiveParts) -> None:
    @router.get("/me", responses=openapi.answer(Me, examples.ME))
    async def me() -> Response:
        """Who asks, and what they may."""
        asked_by = caller()
        apps = None if asked_by.apps is None else sorted(asked_by.apps)
        answer = Me(name=asked_by.name, role=asked_by.role.value, text=asked_by.text, apps=apps, tokens=parts.tokens)
        return json_answer(answer)

    @router.get(
        stream.PATH.removeprefix(PREFIX),
        status_code=HTTPStatus.OK,
        response_class=stream.LiveStream,
        responses=openapi.example(examples.STREAM, stream.LiveStream.media_type),
        dependencies=[Depends(require_operator)],
    )
    async def told(app_id: _AppId = None) -> Response:
        """Sessions, alerts and roles as they are (`snapshot`, in pieces), then what changes (`changes`, `roles`)."""
        asked_by = caller()
        app = asked_by.app_of(app_id)
        apps = asked_by.apps if app is None else frozenset({app})
        return stream.LiveStream(parts.hub, apps, token=asked_by.name if parts.tokens else "")

    @router.get(
        "/search",
        responses=openapi.answer(Hits, examples.HITS),
        dependencies=[Depends(require_operator), *READS_TEXT],
    )
    async def search(q: _Query, app_id: _AppId = None, kind: _Kind = "turns", limit: _Limit = 20) -> Response:
        """Turns, episodes, facts of users or memories of apps that answer a query, best first; with their text."""
        return json_answer(await parts.search.find(caller(), q, kind, app_id, limit))


def _add_sessions(router: APIRouter, parts: LiveParts) -> None:
    guarded = [Depends(require_operator)]

    @router.get(
        "/texts/{session_id:path}",
        responses=openapi.answer(Said, examples.SAID),
        dependencies=[*guarded, *READS_TEXT],
    )
    async def text(session_id: _SessionId, first: _First = 0, last: _Last = 199) -> Response:
        """What was said in a session; turns that are not indexed (any more) are left out."""
        return json_answer(await parts.timelines.said(session_id, first, last))

    @router.get(
        "/sessions/{session_id:path}",
        responses=openapi.answer(Timeline, examples.TIMELINE),
        dependencies=guarded,
    )
    async def timeline(request: Request, session_id: _SessionId, text: _Text = False) -> Response:
        """One session: turns, modes, segments, topics, facts, episodes, alerts with their grounds."""
        asked_by = reads_text(request) if text else caller()
        return json_answer(await parts.timelines.timeline(asked_by, session_id, text=text))


def _add_deeds(router: APIRouter, deeds: AlertDeeds) -> None:
    guarded = [Depends(require_operator), *ACTS]
    accepted = openapi.answer(Written, examples.WRITTEN, status=HTTPStatus.ACCEPTED)

    @router.post(
        "/alerts/{alert_id:path}/acknowledge",
        status_code=HTTPStatus.ACCEPTED,
        openapi_extra=openapi.body(Acknowledge, examples.ACKNOWLEDGE),
        responses=accepted,
        dependencies=guarded,
    )
    async def acknowledge(request: Request, alert_id: _AlertId) -> Response:
        """Say that somebody looks at an alert: it is not repeated until it grows worse or is resolved."""
        asked = await read_body(request, _ACKNOWLEDGE)
        return json_answer(await deeds.acknowledge(caller(), alert_id, asked), status=HTTPStatus.ACCEPTED)

    @router.post(
        "/alerts/{alert_id:path}/label",
        status_code=HTTPStatus.ACCEPTED,
        openapi_extra=openapi.body(Label, examples.LABEL),
        responses=accepted,
        dependencies=guarded,
    )
    async def label(request: Request, alert_id: _AlertId) -> Response:
        """Say whether an alert was right; back-tests and calibration measure by it, and the latest label counts."""
        asked = await read_body(request, _LABEL)
        return json_answer(await deeds.label(caller(), alert_id, asked), status=HTTPStatus.ACCEPTED)
