"""Statistics of apps' memories: which there are, of one app, of all of them, and as a page to look at.

Include these routes before those of single memories, which would take `stats` for the number of one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from streams.api import openapi
from streams.api.apps import examples
from streams.api.apps.figures import ListedSpace, ListedSpaces, SpaceStats, Statistics, space_stats, statistics
from streams.api.apps.messages import now_utc
from streams.api.apps.page import HEADERS, page
from streams.api.apps.ports import AppMemories, AppSpace
from streams.api.apps.space import AppIdInPath, AskedSpace, UserIdInQuery
from streams.http.bodies import json_answer
from streams.http.security import caller, require_admin

_MOST_LISTED = 10_000
_MOST_COUNTED = 1_000
"""Of each the memories are read."""

_Since = Annotated[
    float | None,
    Query(ge=0, description="`spentUnits` of the answer before: what was spent since is told.", examples=[40.0]),
]
_Listed = Annotated[int, Query(ge=1, le=_MOST_LISTED, description="How many at most.", examples=[1_000])]
_Counted = Annotated[int, Query(ge=1, le=_MOST_COUNTED, description="How many at most.", examples=[100])]


def statistics_router(memories: AppMemories, *, now: Callable[[], datetime] = now_utc) -> APIRouter:
    """Routes that count memories of apps; of the caller's apps only.

    Args:
        memories: As indexed.
        now: The clock of the answers.
    """
    router = APIRouter(prefix="/apps", tags=["apps"], dependencies=[Depends(require_admin)])

    @router.get("", responses=openapi.answer(ListedSpaces, examples.SPACES))
    async def spaces(limit: _Listed = 1_000) -> Response:
        """Apps, and users in apps, that have or had memories."""
        found, more = await _spaces(memories, limit)
        listed = sorted(map(_listed, found), key=lambda space: (space.app_id, space.user_id))
        return json_answer(ListedSpaces(spaces=listed, more=more))

    @router.get(
        "/statistics",
        responses=openapi.answer(Statistics, examples.STATISTICS, also={"text/html": examples.PAGE}),
    )
    async def all_spaces(request: Request, limit: _Counted = 100) -> Response:
        """Statistics of all apps: a page, or JSON for who accepts that and no HTML."""
        found, more = await _spaces(memories, limit)
        counted = statistics(now(), await asyncio.gather(*[_counted(memories, space) for space in found]), more=more)
        accepted = request.headers.get("accept", "")
        if "application/json" in accepted and "text/html" not in accepted:
            return json_answer(counted, headers={"Vary": "Accept"})
        return Response(page(counted), headers=HEADERS, media_type="text/html")

    @router.get("/{app_id:path}/memories/stats", responses=openapi.answer(SpaceStats, examples.STATS))
    async def stats(app_id: AppIdInPath, user_id: UserIdInQuery = "", since_units: _Since = None) -> Response:
        """Counts and energy of an app's memories."""
        asked = AskedSpace(app_id, user_id)
        standing = await memories.standing(asked.app_id, asked.user_id)
        found = await memories.memories(asked.app_id, asked.user_id)
        return json_answer(space_stats(asked.app_id, asked.user_id, standing, found, since_units=since_units))

    return router


async def _spaces(memories: AppMemories, limit: int) -> tuple[list[AppSpace], bool]:
    """Those of the caller's apps, and whether there are more."""
    asked_by = caller()
    found = [space for space in await memories.spaces(limit + 1) if asked_by.may_read(space.app_id)]
    return found[:limit], len(found) > limit


async def _counted(memories: AppMemories, space: AppSpace) -> SpaceStats:
    found = await memories.memories(space.app_id, space.user_id)
    return space_stats(space.app_id, space.user_id, space, found, since_units=None)


def _listed(space: AppSpace) -> ListedSpace:
    return ListedSpace(
        app_id=space.app_id, user_id=space.user_id, memories=space.memories, uninstalled=space.uninstalled
    )
