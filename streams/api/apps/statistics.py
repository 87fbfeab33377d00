"""Statistics of apps' memories: which there are, of one app, of all of them, and as a page to look at.

These routes come before those of single memories, which would take `stats` for the number of one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from models.events.app import AppMemoriesChanged
from streams.api.answers import answered
from streams.api.apps.figures import ListedSpace, ListedSpaces, SpaceStats, Statistics, space_stats, statistics
from streams.api.apps.messages import now_utc
from streams.api.apps.page import HEADERS, page
from streams.api.apps.routes import APPS
from streams.api.apps.space import AskedSpace, OfSpace
from streams.http.route import RouteAnswer
from streams.http.security import caller
from streams.index.app_memory import AppMemoryIndex


class ListSpaces(Struct, frozen=True, kw_only=True):
    """A request for spaces of memories."""

    limit: Annotated[int, Meta(ge=1, le=10_000, description="How many at most.")] = 1_000


class CountSpaces(Struct, frozen=True, kw_only=True):
    """A request for statistics; of each space the memories are read."""

    limit: Annotated[int, Meta(ge=1, le=1_000, description="How many at most.")] = 100


class SpaceFigures(OfSpace, frozen=True, kw_only=True):
    """A request for figures of one space."""

    since_units: (
        Annotated[float, Meta(ge=0, description="`spentUnits` of the answer before: what was spent since is told.")]
        | None
    ) = None


class AppStatistics:
    """Routes that count memories of apps; of the caller's apps only.

    Args:
        memories: As indexed.
        now: The clock of the answers.
    """

    def __init__(self, memories: AppMemoryIndex, *, now: Callable[[], datetime] = now_utc) -> None:
        self._memories = memories
        self._now = now

    @APPS.get("", "list_apps")
    async def spaces(self, asked: ListSpaces) -> ListedSpaces:
        """Apps, and users in apps, that have or had memories."""
        found, more = await _spaces(self._memories, asked.limit)
        listed = [answered(ListedSpace, each) for each in sorted(found, key=lambda each: (each.app_id, each.user_id))]
        return ListedSpaces(spaces=listed, more=more)

    @APPS.get("/statistics", "get_statistics", also={"text/html": "<!doctype html>…"})
    async def all_spaces(self, asked: CountSpaces, request: Request) -> RouteAnswer[Statistics] | Response:
        """Statistics of all apps: a page, or JSON for who accepts that and no HTML."""
        found, more = await _spaces(self._memories, asked.limit)
        figures = await asyncio.gather(*[_counted(self._memories, space) for space in found])
        counted = statistics(self._now(), figures, more=more)
        accepted = request.headers.get("accept", "")
        if "application/json" in accepted and "text/html" not in accepted:
            return RouteAnswer(counted, {"Vary": "Accept"})
        return Response(page(counted), headers=HEADERS, media_type="text/html")

    @APPS.get("/{app_id:path}/memories/stats", "get_app_statistics")
    async def stats(self, asked: SpaceFigures) -> SpaceStats:
        """Counts and energy of an app's memories."""
        space = AskedSpace(asked)
        progress = await self._memories.stats(space.app_id, space.user_id)
        found = await self._memories.memories(space.app_id, space.user_id)
        return space_stats(space.app_id, space.user_id, progress, found, since_units=asked.since_units)


async def _spaces(memories: AppMemoryIndex, limit: int) -> tuple[list[AppMemoriesChanged], bool]:
    """Those of the caller's apps, and whether there are more."""
    asked_by = caller()
    found = [space for space in await memories.spaces(limit + 1) if asked_by.may_read(space.app_id)]
    return found[:limit], len(found) > limit


async def _counted(memories: AppMemoryIndex, space: AppMemoriesChanged) -> SpaceStats:
    found = await memories.memories(space.app_id, space.user_id)
    return space_stats(space.app_id, space.user_id, space, found, since_units=None)
