"""Statistics of apps' memories: which there are, of one app, of all of them, and as a page to look at.

These routes come before those of single memories, which would take `stats` for the number of one.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from models.events.app import AppMemoriesChanged, AppMemoryChanged
from models.events.fields import UtcTime
from streams.api.answers import answered
from streams.api.apps.messages import now_utc
from streams.api.apps.routes import APPS, AskedSpace, OfSpace
from streams.http import pages
from streams.http.route import RouteAnswer
from streams.http.security import caller
from streams.index.app_memory import AppMemoryIndex

_COUNTS = ("created", "compactions", "skipped", "edited", "waiting")
"""What the standing of a space has counted."""


class EnergyStats(Struct, frozen=True, kw_only=True, rename="camel"):
    """Energy of memory work: spent and available (app memory, Energy Consumption)."""

    level_units: float
    """After the last event of the space; it has refilled since."""
    capacity_units: float
    spent_units: float
    """Total of all time."""
    spent_since_units: float | None
    """Spent since `since_units` of the request (`getEnergyConsumedSinceLastPoll`)."""


class SpaceStats(Struct, frozen=True, kw_only=True, rename="camel"):
    """Statistics of a space of memories."""

    app_id: str
    user_id: str
    """Empty for the app's own."""
    known: bool
    """Whether the space ever had an event."""
    memories: int
    pinned: int
    shared: int
    conflicting: int
    """Number of memories that conflict with another."""
    created: int
    """Total of all time, like the next three."""
    compactions: int
    skipped: int
    edited: int
    waiting: int
    """Number of conversations that wait to become a memory."""
    uninstalled: bool
    energy: EnergyStats


class ListedSpace(Struct, frozen=True, kw_only=True, rename="camel"):
    """A space of memories without its memories."""

    app_id: str
    user_id: str
    """Empty for the app's own."""
    memories: int
    uninstalled: bool


class ListedSpaces(Struct, frozen=True, kw_only=True):
    """Spaces of memories, sorted by app and user."""

    spaces: list[ListedSpace]
    more: bool
    """Whether there are spaces beyond the limit."""


class Totals(Struct, frozen=True, kw_only=True, rename="camel"):
    """Totals over all listed spaces."""

    spaces: int
    with_memories: int
    memories: int
    conflicting: int
    created: int
    compactions: int
    skipped: int
    edited: int
    waiting: int
    spent_units: float


class Statistics(Struct, frozen=True, kw_only=True, rename="camel"):
    """Statistics of the spaces of memories, most spent energy first."""

    at: UtcTime
    totals: Totals
    spaces: list[SpaceStats]
    more: bool
    """Whether there are spaces beyond the limit."""


def space_stats(
    app_id: str,
    user_id: str,
    space: AppMemoriesChanged | None,
    memories: Sequence[AppMemoryChanged],
    *,
    since_units: float | None,
) -> SpaceStats:
    """Statistics of a space; zeros for one that nothing ever happened in.

    Args:
        app_id: Whose space.
        user_id: Of which user in the app; empty for the app's own.
        space: How far it is.
        memories: What is in it.
        since_units: `spentUnits` of the answer before.
    """
    spent = 0.0 if space is None else space.spent_units
    # A space that was erased begins anew: then all that it spent is new.
    since = None if since_units is None else spent - (since_units if since_units <= spent else 0.0)
    return SpaceStats(
        app_id=app_id,
        user_id=user_id,
        known=space is not None,
        memories=len(memories),
        pinned=sum(memory.pinned for memory in memories),
        shared=sum(bool(memory.shared_with) for memory in memories),
        conflicting=sum(bool(memory.conflicts_with) for memory in memories),
        **{name: getattr(space, name, 0) for name in _COUNTS},
        uninstalled=space is not None and space.uninstalled,
        energy=EnergyStats(
            level_units=0.0 if space is None else space.energy_units,
            capacity_units=0.0 if space is None else space.energy_capacity_units,
            spent_units=spent,
            spent_since_units=since,
        ),
    )


def statistics(at: datetime, spaces: Sequence[SpaceStats], *, more: bool) -> Statistics:
    """All spaces with their sums, those that spent most first."""
    return Statistics(
        at=at,
        totals=Totals(
            spaces=len(spaces),
            with_memories=sum(space.memories > 0 for space in spaces),
            **{name: sum(getattr(space, name) for space in spaces) for name in ("memories", "conflicting", *_COUNTS)},
            spent_units=sum(space.energy.spent_units for space in spaces),
        ),
        spaces=sorted(spaces, key=lambda space: (-space.energy.spent_units, space.app_id, space.user_id)),
        more=more,
    )


HEADERS = {**pages.HEADERS, "Cache-Control": "no-store", "Vary": "Accept"}
_MOST_BARS = 12


_MEASURES = (
    ("Memories", "kept now", attrgetter("memories")),
    ("Created", "of all time", attrgetter("created")),
    ("Compactions", "an eleventh memory had to go, or be merged", attrgetter("compactions")),
    ("Energy spent", "units, of all time", attrgetter("energy.spent_units")),
    ("Skipped", "conversations that no memory was made of", attrgetter("skipped")),
    ("Conflicts", "memories that contradict another", attrgetter("conflicting")),
)
"""Title, what it means, and the figure of a space."""


def page(counted: Statistics) -> str:
    """The whole document. Names of apps and users are what producers sent: they are escaped."""
    totals, spaces = counted.totals, counted.spaces
    share = totals.with_memories / totals.spaces if totals.spaces else 0.0
    sums = {
        "spaces": totals.spaces,
        "of them with memories": f"{share:.0%}",
        "memories": totals.memories,
        "created": totals.created,
        "compactions": totals.compactions,
        "skipped": totals.skipped,
        "waiting": totals.waiting,
        "energy units": f"{totals.spent_units:,.0f}",
    }
    left = f", the first {_MOST_BARS} of {len(spaces)}" if len(spaces) > _MOST_BARS else ""
    pictures = []
    for title, means, figure in _MEASURES if spaces else ():
        ranked = sorted(((figure(space), _name(space)) for space in spaces), key=lambda bar: -bar[0])
        pictures.append((title, means + left, ranked[:_MOST_BARS], ranked[0][0] or 1.0))
    heads = ("App", *(title for title, *_ in _MEASURES), "Edited", "Waiting", "Energy left")
    rows = [
        (
            _name(space) + (" (uninstalled)" if space.uninstalled else ""),
            *(f"{figure(space):,.0f}" for *_, figure in _MEASURES),
            f"{space.edited:,}",
            f"{space.waiting:,}",
            f"{space.energy.level_units:,.0f} of {space.energy.capacity_units:,.0f}",
        )
        for space in spaces
    ]
    return pages.render(
        "streams/api/apps/page.html.j2", counted=counted, sums=sums, pictures=pictures, heads=heads, rows=rows
    )


def _name(space: SpaceStats) -> str:
    return f"{space.app_id} / {space.user_id}" if space.user_id else space.app_id


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
    async def spaces(
        self, *, limit: Annotated[int, Meta(ge=1, le=10_000, description="Maximum number of items.")] = 1_000
    ) -> ListedSpaces:
        """List apps, and users in apps, that have or had memories."""
        found, more = await _spaces(self._memories, limit)
        listed = [answered(ListedSpace, each) for each in sorted(found, key=lambda each: (each.app_id, each.user_id))]
        return ListedSpaces(spaces=listed, more=more)

    @APPS.get("/statistics", "get_statistics", also={"text/html": "<!doctype html>…"})
    async def all_spaces(
        self, request: Request, *, limit: Annotated[int, Meta(ge=1, le=1_000, description="Maximum number.")] = 100
    ) -> RouteAnswer[Statistics] | Response:
        """Return statistics of all apps: JSON if `Accept` names JSON and not HTML, else an HTML page."""
        found, more = await _spaces(self._memories, limit)
        figures = await asyncio.gather(*[_counted(self._memories, space) for space in found])
        counted = statistics(self._now(), figures, more=more)
        accepted = request.headers.get("accept", "")
        if "application/json" in accepted and "text/html" not in accepted:
            return RouteAnswer(counted, {"Vary": "Accept"})
        return Response(page(counted), headers=HEADERS, media_type="text/html")

    @APPS.get("/{app_id:path}/memories/stats", "get_app_statistics")
    async def stats(
        self,
        asked: OfSpace,
        *,
        since_units: Annotated[
            float, Meta(ge=0, description="`spentUnits` of the previous response, to compute `spentSinceUnits`.")
        ]
        | None = None,
    ) -> SpaceStats:
        """Return counts and energy of an app's memories."""
        space = AskedSpace(asked)
        progress = await self._memories.stats(space.app_id, space.user_id)
        found = await self._memories.memories(space.app_id, space.user_id)
        return space_stats(space.app_id, space.user_id, progress, found, since_units=since_units)


async def _spaces(memories: AppMemoryIndex, limit: int) -> tuple[list[AppMemoriesChanged], bool]:
    """Those of the caller's apps, and whether there are more."""
    asked_by = caller()
    found = [space for space in await memories.spaces(limit + 1) if asked_by.may_read(space.app_id)]
    return found[:limit], len(found) > limit


async def _counted(memories: AppMemoryIndex, space: AppMemoriesChanged) -> SpaceStats:
    found = await memories.memories(space.app_id, space.user_id)
    return space_stats(space.app_id, space.user_id, space, found, since_units=None)
