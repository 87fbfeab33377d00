"""The page of statistics of apps' memories."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from streams.api.apps.figures import SpaceStats, Statistics
from streams.http import pages

HEADERS = {**pages.HEADERS, "Cache-Control": "no-store", "Vary": "Accept"}
_MOST_BARS = 12


class _Measure(NamedTuple):
    title: str
    means: str
    of: Callable[[SpaceStats], float]


_MEASURES = (
    _Measure("Memories", "kept now", lambda space: space.memories),
    _Measure("Created", "of all time", lambda space: space.created),
    _Measure("Compactions", "an eleventh memory had to go, or be merged", lambda space: space.compactions),
    _Measure("Energy spent", "units, of all time", lambda space: space.energy.spent_units),
    _Measure("Skipped", "conversations that no memory was made of", lambda space: space.skipped),
    _Measure("Conflicts", "memories that contradict another", lambda space: space.conflicting),
)


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
    for measure in _MEASURES if spaces else ():
        ranked = sorted(((measure.of(space), _name(space)) for space in spaces), key=lambda bar: -bar[0])
        pictures.append((measure.title, measure.means + left, ranked[:_MOST_BARS], ranked[0][0] or 1.0))
    heads = ("App", *(measure.title for measure in _MEASURES), "Edited", "Waiting", "Energy left")
    rows = [
        (
            _name(space) + (" (uninstalled)" if space.uninstalled else ""),
            *(f"{measure.of(space):,.0f}" for measure in _MEASURES),
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
