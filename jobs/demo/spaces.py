"""Memories of apps as the demo sees them: made when conversations end, compacted when there are eleven."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from models.events import AppMemoriesChanged, AppMemoriesCompacted, AppMemoryChanged

SpaceNews = AppMemoryChanged | AppMemoriesCompacted
"""What is told of memories one by one."""


class SpaceSeen(Struct):
    """The memories of one app."""

    by_slot: dict[int, AppMemoryChanged] = {}
    causes: Counter[str] = field(default_factory=Counter)
    """Cause → changes of memories."""
    most: int = 0
    """Memories at one moment, at the most."""
    compactions: list[AppMemoriesCompacted] = []
    stats: AppMemoriesChanged | None = None

    @property
    def memories(self) -> int:
        """How many are there."""
        return sum(memory.active for memory in self.by_slot.values())


class SpacesSeen(Struct):
    """All apps, by id. Whoever folds events in sees to it that none comes twice."""

    by_app: dict[str, SpaceSeen] = {}

    @property
    def compactions(self) -> Iterator[AppMemoriesCompacted]:
        """Of all apps."""
        return (compaction for space in self.by_app.values() for compaction in space.compactions)

    def take(self, event: SpaceNews | AppMemoriesChanged) -> None:
        """Fold one event; of one app they come in their order."""
        space = self.by_app.setdefault(event.app_id, SpaceSeen())
        if isinstance(event, AppMemoriesChanged):
            space.stats = event
            space.most = max(space.most, event.memories)
            return
        if isinstance(event, AppMemoriesCompacted):
            space.compactions.append(event)
            return
        space.by_slot[event.slot] = event
        space.causes[event.cause] += 1


# --- counted


class CompactionSummary(Struct, frozen=True, kw_only=True):
    """One compaction, and why."""

    app_id: str
    before: int
    after: int
    action: str
    target_memory_id: int
    merged_memory_id: int | None
    reason: str
    decided_by: str


class SpacesSummary(Struct, frozen=True, kw_only=True):
    """Memories of all apps."""

    memories: dict[str, int]
    """App → memories that are there."""
    changes: dict[str, int]
    """Cause (created, merged, compacted, …) → changes."""
    most_of_an_app: int
    compactions: list[CompactionSummary]
    spent_units: float
    """Of the energy budgets."""


def summarise_spaces(spaces: SpacesSeen) -> SpacesSummary:
    """Count what is remembered of apps."""
    seen: Mapping[str, SpaceSeen] = spaces.by_app
    return SpacesSummary(
        memories={app_id: space.memories for app_id, space in sorted(seen.items())},
        changes=dict(sum((space.causes for space in seen.values()), Counter())),
        most_of_an_app=max((space.most for space in seen.values()), default=0),
        compactions=[
            CompactionSummary(
                app_id=each.app_id,
                before=len(each.before),
                after=len(each.after),
                action=each.action,
                target_memory_id=each.target_memory_id,
                merged_memory_id=each.merged_memory_id,
                reason=each.reason,
                decided_by=each.decided_by,
            )
            for each in spaces.compactions
        ],
        spent_units=round(sum(s.stats.spent_units for s in seen.values() if s.stats is not None), 1),
    )
