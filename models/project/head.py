"""Head of a project's state: its counters, what it has seen, how far its work is."""

from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Struct

from models.events import ProjectConversationEnded, ProjectTurnAdded
from models.events.project_items import ConsolidationFigures
from models.policy.project import ProjectPolicy
from models.project.shards import MemoryCounts
from models.project.store import LAYOUT
from models.state.seen import is_new

Cause = Literal["scheduled", "asked"]


class Consolidation(Struct, kw_only=True):
    """A consolidation that is under way; changed in place with each step. Counts memories."""

    run: int
    cause: Cause
    started_at: datetime
    shelf: int = 0
    """The next memory to look at is in this shard (its stored name) …"""
    after: str = ""
    """… behind this one."""
    looked_at: int = 0
    decay_updated: int = 0
    archived: int = 0
    archived_ids: list[str] = []
    tokens_reclaimed: int = 0
    """Of the archived."""
    displaced: int = 0


class AskedRun(Struct, frozen=True, array_like=True):
    """A consolidation that somebody asked for and that is not done: what is answered then."""

    request_id: str
    by: str


class ProjectHead(Struct, array_like=True):
    """Counters of one project. Sizes are bounded by the policy and the number of partitions."""

    version: int = LAYOUT.version
    app_id: str = ""
    project_id: str = ""
    born: str = ""
    born_at: datetime | None = None
    """The broker's time of the first record."""
    revision: int = 0
    seen: dict[int, tuple[int, bytes]] = {}
    """Partition of `turns.v1` → offset of the last record of which something came, and short ids of what came of it."""
    turn_count: int = 0
    memories: MemoryCounts = msgspec.field(default_factory=MemoryCounts)
    conversations: int = 0
    chunks: int = 0
    episodes: int = 0
    pending: int = 0
    slots: dict[str, tuple[int, int]] = {}
    release_from: int = 0
    """Turns of the project from which on the first of `q` is due; 0 for none."""
    consolidated_at: datetime | None = None
    runs: int = 0
    """Consolidations of all time, one under way among them."""
    run: Consolidation | None = None
    """The one under way."""
    asked: list[AskedRun] = []
    accessed: str = ""
    """Of a record of accesses that takes more than one write: the last id that is counted."""
    consolidated: ConsolidationFigures | None = None
    """What the last consolidation came to."""

    @property
    def items(self) -> int:
        """Number of items that are kept."""
        return self.memories.count + self.conversations + self.chunks + self.episodes + self.pending

    def sees(self, event: ProjectTurnAdded | ProjectConversationEnded) -> bool:
        """Mark an event of a session as seen; False if it was seen before."""
        return is_new(self.seen, event.source, event.id)

    def due(self, policy: ProjectPolicy) -> datetime | None:
        """Time at which a consolidation is due, or goes on; None if it could change nothing."""
        if self.run is not None:
            return self.run.started_at
        last = self.consolidated_at or self.born_at
        if last is None or not (self.memories.count > self.memories.archived or self.pending):
            return None
        return last + policy.consolidation.every
