"""A project without a log: events in, a view that readers ask. For sessions in one process, tests and measurements."""

from __future__ import annotations

from datetime import datetime

from models.events import (
    Position,
    ProjectChanged,
    ProjectErased,
    ProjectErasure,
    ProjectEvent,
    ProjectItemChanged,
    ProjectOutput,
    project_key,
)
from models.events.topics import COMMANDS
from models.policy import Policy
from models.project.fold import fold
from models.project.state import ProjectState
from models.project.view import ProjectView


class FoldedProject:
    """One project, folded in this process; its view is up to date after each event.

    Args:
        app_id: Whose project.
        project_id: Which.
        policy: The rules.

    Attributes:
        view: What readers ask; another one from when the project is erased.
        offset: Of the last event.
    """

    def __init__(self, app_id: str, project_id: str, policy: Policy) -> None:
        self.view = ProjectView(app_id, project_id, policy.projects)
        self.offset = -1
        self._policy = policy
        self._state = ProjectState(project_key(app_id, project_id), lambda _entity: None, policy)

    def take(self, event: ProjectEvent | ProjectErasure, now: datetime) -> list[ProjectOutput]:
        """Fold an event.

        Args:
            event: What happened.
            now: What the broker's time of its record would be.
        """
        self.offset += 1
        self._state.begin_event()
        outputs = fold(self._state, event, Position(COMMANDS.name, 0, self.offset), now, self._policy)
        if isinstance(event, ProjectErased):
            # A new life's items come before its standing, by which a view would tell it from the one before.
            self.view = ProjectView(self.view.app_id, self.view.project_id, self._policy.projects)
        for output in outputs:
            if isinstance(output, ProjectItemChanged | ProjectChanged):
                self.view.apply(output)
        return outputs
