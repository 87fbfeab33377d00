"""Reading users' memory over HTTP (seed 002): retrieval, the whole prompt, search and look-ups.

A user id may hold slashes, so the routes that end in a fixed word come first; who has a user called like one of them
asks for its standing by `/standing`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from models.events.user import FactCategory
from streams.api import openapi
from streams.api.users import examples
from streams.api.users.messages import (
    MAX_RECENT,
    After,
    AssembleContext,
    AssembledContext,
    EpisodeAnswer,
    FactAnswer,
    Found,
    Retrieve,
    Retrieved,
    SearchMemory,
    StandingAnswer,
    TurnAnswer,
    UserFacts,
)
from streams.api.users.reading import MemoryReader
from streams.http.audit import READS_TEXT
from streams.http.bodies import json_answer, read_body
from streams.http.limits import extend_deadline

_UserId = Annotated[
    str,
    Path(min_length=1, max_length=256, description="URL-encoded; any character.", examples=[examples.USER_ID]),
]
_AppId = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=256,
        description="The user's app; none: the token's only one, else all it may read.",
        examples=[examples.APP_ID],
    ),
]
_Category = Annotated[FactCategory | None, Query(description="Only facts of this kind.", examples=["identity"])]
_IncludePast = Annotated[bool, Query(description="Also values that no longer hold.", examples=[False])]
_Limit = Annotated[int, Query(ge=1, le=1_000, description="How many at most.", examples=[20])]
_Last = Annotated[int, Query(ge=1, le=MAX_RECENT, description="How many at most.", examples=[10])]

_RETRIEVE = msgspec.json.Decoder(Retrieve)
_CONTEXT = msgspec.json.Decoder(AssembleContext)
_SEARCH = msgspec.json.Decoder(SearchMemory)


def memory_router(reader: MemoryReader) -> APIRouter:
    """Routes over users' memory. A user that nothing is known of has an empty memory; it is no error."""
    router = APIRouter(prefix="/v1", tags=["memory"])
    _add_questions(router, reader)
    _add_lists(router, reader)
    _add_standing(router, reader)
    return router


def _add_questions(router: APIRouter, reader: MemoryReader) -> None:
    @router.post(
        "/retrieve",
        dependencies=READS_TEXT,
        openapi_extra=openapi.body(Retrieve, examples.RETRIEVE),
        responses=openapi.answer(Retrieved, examples.RETRIEVED),
    )
    async def retrieve(request: Request) -> Response:
        """What is known of a user that matters to a question: facts, near episodes, and both as text for a prompt."""
        asked = await read_body(request, _RETRIEVE)
        _allow_waiting(request, asked.after)
        return json_answer(await reader.retrieve(asked))

    @router.post(
        "/context",
        dependencies=READS_TEXT,
        openapi_extra=openapi.body(AssembleContext, examples.CONTEXT),
        responses=openapi.answer(AssembledContext, examples.ASSEMBLED),
    )
    async def context(request: Request) -> Response:
        """The whole prompt for a question within a token budget: facts first, then last turns, then episodes."""
        asked = await read_body(request, _CONTEXT)
        _allow_waiting(request, asked.after)
        return json_answer(await reader.context(asked))

    @router.post(
        "/search",
        dependencies=READS_TEXT,
        openapi_extra=openapi.body(SearchMemory, examples.SEARCH),
        responses=openapi.answer(Found, examples.FOUND),
    )
    async def search(request: Request) -> Response:
        """Turns or episodes of a user, a session or an app, by words and likeness together, best first."""
        return json_answer(await reader.search(await read_body(request, _SEARCH)))


def _add_lists(router: APIRouter, reader: MemoryReader) -> None:
    @router.get(
        "/users/{user_id:path}/facts",
        dependencies=READS_TEXT,
        responses=openapi.answer(list[FactAnswer], [examples.FACT]),
    )
    async def facts(
        user_id: _UserId, app_id: _AppId = None, category: _Category = None, include_past: _IncludePast = False
    ) -> Response:
        """Facts of a user, those that hold first, the most important first."""
        asked = UserFacts(user_id=user_id, app_id=app_id, category=category, include_past=include_past)
        return json_answer(await reader.facts(asked))

    @router.get(
        "/users/{user_id:path}/episodes",
        dependencies=READS_TEXT,
        responses=openapi.answer(list[EpisodeAnswer], [examples.EPISODE]),
    )
    async def episodes(user_id: _UserId, app_id: _AppId = None, limit: _Limit = 20) -> Response:
        """Episodes of a user, the latest first."""
        return json_answer(await reader.episodes(user_id, app_id, limit))

    @router.get(
        "/users/{user_id:path}/recent",
        dependencies=READS_TEXT,
        responses=openapi.answer(list[TurnAnswer], [examples.TURN]),
    )
    async def recent(user_id: _UserId, app_id: _AppId = None, last: _Last = 10) -> Response:
        """The last turns of a user across sessions, oldest first: the short-term tier."""
        return json_answer(await reader.recent(user_id, app_id, last))


def _add_standing(router: APIRouter, reader: MemoryReader) -> None:
    described = openapi.answer(StandingAnswer, examples.STANDING)

    @router.get("/users/{user_id:path}", responses=described)
    @router.get("/users/{user_id:path}/standing", responses=described)  # decorators add from below: it comes first
    async def standing(user_id: _UserId, app_id: _AppId = None) -> Response:
        """How many turns, facts and episodes are remembered of a user, and which turns are at hand."""
        return json_answer(await reader.standing(user_id, app_id))


def _allow_waiting(request: Request, after: After | None) -> None:
    """The wait that a caller asks for is none of the time that an answer may take."""
    if after is not None:
        extend_deadline(request.scope, after.timeout_ms / 1_000)
