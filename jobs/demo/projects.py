"""Projects' memory as the demo sees it (seed 004): what is told of items becomes a view, as readers have one."""

from __future__ import annotations

from msgspec import Struct

from models.events import EpisodeKind, MemoryType, ProjectChanged, ProjectItemChanged
from models.policy.project import ProjectPolicy
from models.project.saved import SavedProject
from models.project.view import ProjectView

ProjectNews = ProjectItemChanged
"""What is told of projects one by one."""


class ProjectsSeen(Struct):
    """All projects, by app and project id. Whoever folds events in sees to it that none comes twice."""

    by_name: dict[tuple[str, str], ProjectView] = {}

    @property
    def memories(self) -> int:
        """Of all projects."""
        return sum(len(project.memories) for project in self.by_name.values())

    def take(self, event: ProjectItemChanged | ProjectChanged) -> None:
        """Fold one event; of one project they come in their order."""
        name = event.app_id, event.project_id
        if name not in self.by_name:
            self.by_name[name] = ProjectView(*name, ProjectPolicy())
        self.by_name[name].apply(event)


def is_milestone(event: ProjectItemChanged) -> bool:
    """Whether an item is worth a line: a decision that came or was superseded, or another key moment.

    A decision is told as such; its episode says the same again.
    """
    if event.memory is not None:
        return event.memory.type is MemoryType.DECISION and event.cause in {"created", "superseded"}
    if event.episode is not None:
        return event.episode.kind is not EpisodeKind.DECISION_MADE and event.cause == "created"
    return False


def saved(project: ProjectView) -> SavedProject:
    """The items of a project, memories in order of their ids."""
    return SavedProject(
        memories=[memory for _, memory in sorted(project.memories.items())],
        episodes=list(project.episodes.values()),
        conversations=list(project.conversations.values()),
        chunks=list(project.chunks.values()),
        pending=list(project.pending.values()),
    )
