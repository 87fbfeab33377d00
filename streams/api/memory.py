"""Reading users' memory over HTTP (seed 002): retrieval, the whole prompt, search and look-ups.

Bodies are decoded and answers encoded by msgspec, once and past FastAPI's own validation, which would cost more than
the retrieval itself. A user id may hold slashes, so the routes that end in a fixed word come first; who has a user
called like one of them asks for its standing by `/standing`.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from models.user_events import FactCategory
from streams.api import examples, openapi
from streams.api.limits import extend_deadline
from streams.api.messages import (
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
from streams.api.problems import undecodable
from streams.api.reading import MemoryReader

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

_Message = TypeVar("_Message")
_encode = msgspec.json.Encoder().encode
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
        openapi_extra=openapi.body(Retrieve, examples.RETRIEVE),
        responses=openapi.answer(Retrieved, examples.RETRIEVED),
    )
    async def retrieve(request: Request) -> Response:
        """What is known of a user that matters to a question: facts, near episodes, and both as text for a prompt."""
        asked = await _read(request, _RETRIEVE)
        _allow_waiting(request, asked.after)
        return _json(await reader.retrieve(asked))

    @router.post(
        "/context",
        openapi_extra=openapi.body(AssembleContext, examples.CONTEXT),
        responses=openapi.answer(AssembledContext, examples.ASSEMBLED),
    )
    async def context(request: Request) -> Response:
        """The whole prompt for a question within a token budget: facts first, then last turns, then episodes."""
        asked = await _read(request, _CONTEXT)
        _allow_waiting(request, asked.after)
        return _json(await reader.context(asked))

    @router.post(
        "/search",
        openapi_extra=openapi.body(SearchMemory, examples.SEARCH),
        responses=openapi.answer(Found, examples.FOUND),
    )
    async def search(request: Request) -> Response:
        """Turns or episodes of a user, a session or an app, by words and likeness together, best first."""
        return _json(await reader.search(await _read(request, _SEARCH)))


def _add_lists(router: APIRouter, reader: MemoryReader) -> None:
    @router.get("/users/{user_id:path}/facts", responses=openapi.answer(list[FactAnswer], [examples.FACT]))
    async def facts(
        user_id: _UserId, app_id: _AppId = None, category: _Category = None, include_past: _IncludePast = False
    ) -> Response:
        """Facts of a user, those that hold first, the most important first."""
        asked = UserFacts(user_id=user_id, app_id=app_id, category=category, include_past=include_past)
        return _json(await reader.facts(asked))

    @router.get("/users/{user_id:path}/episodes", responses=openapi.answer(list[EpisodeAnswer], [examples.EPISODE]))
    async def episodes(user_id: _UserId, app_id: _AppId = None, limit: _Limit = 20) -> Response:
        """Episodes of a user, the latest first."""
        return _json(await reader.episodes(user_id, app_id, limit))

    @router.get("/users/{user_id:path}/recent", responses=openapi.answer(list[TurnAnswer], [examples.TURN]))
    async def recent(user_id: _UserId, app_id: _AppId = None, last: _Last = 10) -> Response:
        """The last turns of a user across sessions, oldest first: the short-term tier."""
        return _json(await reader.recent(user_id, app_id, last))


def _add_standing(router: APIRouter, reader: MemoryReader) -> None:
    described = openapi.answer(StandingAnswer, examples.STANDING)

    @router.get("/users/{user_id:path}", responses=described)
    @router.get("/users/{user_id:path}/standing", responses=described)  # decorators add from below: it comes first
    async def standing(user_id: _UserId, app_id: _AppId = None) -> Response:
        """How many turns, facts and episodes are remembered of a user, and which turns are at hand."""
        return _json(await reader.standing(user_id, app_id))


async def _read(request: Request, decoder: msgspec.json.Decoder[_Message]) -> _Message:
    """The request's body.

    Raises:
        Problem: 422, with the field and without what it held.
    """
    body = await request.body()
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise undecodable(error) from None


def _allow_waiting(request: Request, after: After | None) -> None:
    """The wait that a caller asks for is none of the time that an answer may take."""
    if after is not None:
        extend_deadline(request.scope, after.timeout_ms / 1_000)


def _json(answer: Any) -> Response:
    return Response(_encode(answer), media_type="application/json")
