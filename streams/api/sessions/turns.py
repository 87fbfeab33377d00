"""Reading a session's turns: the ones like a text, and the last ones (seed 000, layer 4)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from streams.api import openapi
from streams.api.users import examples
from streams.http.audit import READS_TEXT, note_given
from streams.index.session_memory import RememberedTurn, SessionVectorMemory

# A session id is any 1-256 characters: `:path` lets an encoded slash through.
_SessionId = Annotated[
    str,
    Path(min_length=1, max_length=256, description="URL-encoded; any character.", examples=[examples.SESSION_ID]),
]
_Text = Annotated[
    str,
    Query(min_length=1, max_length=8_000, description="What the turns should be like.", examples=[examples.QUERY]),
]
_TopK = Annotated[int, Query(ge=1, le=100, description="How many at most.", examples=[5])]
_Last = Annotated[int, Query(ge=1, le=1_000, description="How many at most.", examples=[10])]


def index_router(memory: SessionVectorMemory, *, topic_prefix: str) -> APIRouter:
    """The route that says what this index is: two roles on one machine are told apart by the prefix."""
    router = APIRouter(prefix="/v1/index", tags=["memory"])

    @router.get("", responses=openapi.example(examples.INDEX))
    async def index() -> dict[str, str | int]:
        """How many turns are indexed, of all sessions that the caller may read, and of which topics."""
        return {"topic_prefix": topic_prefix, "turns": await memory.count()}

    return router


def similar_router(memory: SessionVectorMemory) -> APIRouter:
    """Routes over one vector memory. An unknown session has no turns; it is no error."""
    router = APIRouter(prefix="/v1/sessions", tags=["sessions"])

    @router.get(
        "/{session_id:path}/similar", dependencies=READS_TEXT, responses=openapi.example([examples.SIMILAR_TURN])
    )
    async def similar(session_id: _SessionId, q: _Text, top_k: _TopK = 5) -> list[RememberedTurn]:
        """Turns of the session most like `q`, best first."""
        found = await memory.find_similar(q, session_id, top_k)
        note_given(found)
        return found

    @router.get(
        "/{session_id:path}/turns",
        dependencies=READS_TEXT,
        responses=openapi.example([{**examples.SIMILAR_TURN, "similarity": None}]),
    )
    async def turns(session_id: _SessionId, last: _Last = 10) -> list[RememberedTurn]:
        """The newest turns of the session, oldest first."""
        found = await memory.last_turns(session_id, last)
        note_given(found)
        return found

    return router
