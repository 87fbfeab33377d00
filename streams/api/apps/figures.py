"""Figures of apps' memories as they are answered: of one space, of all of them, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from models.events.app import AppMemoriesChanged, AppMemoryChanged
from models.events.fields import UtcTime

_COUNTS = ("created", "compactions", "skipped", "edited", "waiting")
"""What the standing of a space has counted."""


class EnergyStats(Struct, frozen=True, kw_only=True, rename="camel"):
    """What memory work cost and may cost (app memory, Energy Consumption)."""

    level_units: float
    """After the last event of the space; it has refilled since."""
    capacity_units: float
    spent_units: float
    """Of all time."""
    spent_since_units: float | None
    """Since the `spent_units` that the request names (`getEnergyConsumedSinceLastPoll`)."""


class SpaceStats(Struct, frozen=True, kw_only=True, rename="camel"):
    """Statistics of a space of memories."""

    app_id: str
    user_id: str
    """Empty for the app's own."""
    known: bool
    """Whether anything ever happened in it."""
    memories: int
    pinned: int
    shared: int
    conflicting: int
    """Memories that conflict with another."""
    created: int
    """Of all time, like the following three."""
    compactions: int
    skipped: int
    edited: int
    waiting: int
    """Conversations that wait to become a memory."""
    uninstalled: bool
    energy: EnergyStats


class ListedSpace(Struct, frozen=True, kw_only=True, rename="camel"):
    """A space of memories, without what is in it."""

    app_id: str
    user_id: str
    """Empty for the app's own."""
    memories: int
    uninstalled: bool


class ListedSpaces(Struct, frozen=True, kw_only=True):
    """Spaces of memories, by app and user."""

    spaces: list[ListedSpace]
    more: bool
    """Whether there are spaces beyond the limit."""


class Totals(Struct, frozen=True, kw_only=True, rename="camel"):
    """Of all spaces that are listed."""

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
    """Spaces of memories, those that spent most first."""

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
