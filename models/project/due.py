"""Which projects a partition has, and for which a consolidation is due."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from models.partition.sessions import Parts
from models.policy import Policy
from models.project.state import ProjectState
from models.project.store import project_of

_PREFIX = "project:"
"""Of the keys of projects (`models.events.project.project_key`) and of all their entities."""


class DueProject(NamedTuple):
    """A project in which something is due. They sort by time."""

    at: datetime
    app_id: str
    project_id: str
    revision: int
    """Of the project: after a step of its consolidation it is another one that is due."""
    looked_at: int
    """How far a consolidation under way is."""


class ProjectStandings:
    """Follows the projects of a partition from write to write.

    Args:
        entities: The partition's state.
        policy: When a consolidation is due.

    Attributes:
        memories: Kept ones of all projects.
    """

    def __init__(self, entities: Mapping[str, Parts], policy: Policy) -> None:
        self.memories = 0
        self._known: dict[str, int] = {}
        self._due: dict[str, DueProject] = {}
        for key in [key for key in entities if key.startswith(_PREFIX) and project_of(key) == key]:
            self.note(key, ProjectState.load(key, entities.get, policy))

    @property
    def projects(self) -> int:
        """There are so many."""
        return len(self._known)

    def note(self, key: str, project: ProjectState) -> None:
        """A project was written."""
        head = project.head
        self.memories -= self._known.pop(key, 0)
        self._due.pop(key, None)
        if not project.known:
            return
        self._known[key] = head.memories.count
        self.memories += head.memories.count
        if project.due is not None:
            looked_at = 0 if head.run is None else head.run.looked_at
            self._due[key] = DueProject(project.due, head.app_id, head.project_id, head.revision, looked_at)

    def due(self, now: datetime) -> list[DueProject]:
        """Where something is due by now, the longest due first."""
        return sorted(project for project in self._due.values() if project.at <= now)
