"""A project folded in this process, for the routes over it: what is read, what carries commands out, what is noted."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import structs

from models.events import ProjectChanged, ProjectTurnAdded
from models.events.base import Position, Role
from models.events.project import ProjectCommand, ProjectImported
from models.events.project_items import (
    ConversationChunk,
    PendingFact,
    ProjectConversation,
    ProjectEpisode,
    ProjectItem,
    ProjectMemory,
)
from models.events.topics import COMMANDS, TURNS
from models.policy import Policy
from models.project.fold import FoldedProject
from models.project.saved import SavedProject, batches
from models.project.view import ProjectView
from models.retrieval.relevance import RetrievalQuery, RetrievedItem
from streams.index.project_memory import ProjectMemories
from tests.support.blank_events import blank

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
SAID = (
    (Role.USER, "What database should we use?"),
    (Role.ASSISTANT, "I recommend PostgreSQL for this use case."),
    (Role.USER, "We decided to use PostgreSQL."),
)
"""The source's usage example."""
_KINDS: dict[type, str] = {
    ProjectMemory: "memories",
    ProjectEpisode: "episodes",
    ConversationChunk: "chunks",
    ProjectConversation: "conversations",
    PendingFact: "pending",
}


@dataclass
class Projects(ProjectMemories):
    """A `ProjectMemories` over the real fold and views, a `CommandSender`, and a recorder of accesses.

    It gives whatever was put in of the app that is asked for, whoever asks. A command is carried out when it is sent,
    unless `away`.
    """

    policy: Policy = field(default_factory=Policy)
    folded: dict[tuple[str, str], FoldedProject] = field(default_factory=dict)
    sent: list[ProjectCommand] = field(default_factory=list)
    accessed: list[tuple[str, str, list[str]]] = field(default_factory=list)
    away: bool = False
    fails: Exception | None = None
    now: datetime = NOW
    said: int = 0

    def clock(self) -> datetime:
        """The time of what is asked and written."""
        return self.now

    def of(self, app_id: str, project_id: str) -> FoldedProject:
        """A project, a new one if need be."""
        if (app_id, project_id) not in self.folded:
            self.folded[app_id, project_id] = FoldedProject(app_id, project_id, self.policy)
        return self.folded[app_id, project_id]

    def say(self, role: Role, content: str, *, app: str = "a", project: str = "p", session: str = "s") -> int:
        """A turn of a project; gives its number."""
        self.now += timedelta(seconds=1)
        known = self.of(app, project).view.conversations.get(session)
        turn = 0 if known is None else known.total_turns
        self.said += 1
        event = blank(
            ProjectTurnAdded,
            session_id=session,
            user_id="u",
            app_id=app,
            project_id=project,
            timestamp=self.now,
            source=Position(TURNS.name, 0, self.said),
            turn=turn,
            role=role,
            content=content,
        )
        self.of(app, project).take(event, self.now)
        return turn

    def put(self, app: str, project: str, items: Iterable[ProjectItem]) -> None:
        """Items of a project, as an import has them."""
        kinds: dict[str, list[ProjectItem]] = {}
        for item in items:
            kinds.setdefault(_KINDS[type(item)], []).append(item)
        saved = msgspec.convert(kinds, SavedProject)
        for piece in batches(saved, 100, 10**6):
            told: dict[str, Any] = {"app_id": app, "project_id": project, "timestamp": self.now, **piece}
            self.of(app, project).take(ProjectImported(**told), self.now)

    # --- as the real ones

    async def stats(self, app_id: str, project_id: str) -> ProjectChanged | None:
        """As the real one."""
        folded = self.folded.get((app_id, project_id))
        told = None if folded is None else folded.view.stats
        if folded is None or told is None:
            return None
        return structs.replace(told, source=Position(COMMANDS.name, 0, folded.offset))

    async def projects(self, app_id: str | None, limit: int) -> list[ProjectChanged]:
        """As the real one; of every app where none is named."""
        found = [await self.stats(*key) for key in self.folded if app_id in {None, key[0]}]
        return [each for each in found if each is not None][:limit]

    async def view(self, app_id: str, project_id: str) -> ProjectView | None:
        """As the real one."""
        folded = self.folded.get((app_id, project_id))
        return None if folded is None else folded.view

    async def find(self, view: ProjectView, query: RetrievalQuery, at: datetime) -> list[RetrievedItem]:
        """By the source's scores."""
        return view.retrieve(query, at)

    def record(self, app_id: str, project_id: str, ids: Iterable[str]) -> None:
        """As the real one."""
        self.accessed.append((app_id, project_id, list(ids)))

    async def send(self, command: Any) -> Position:
        """As the real one."""
        if self.fails is not None:
            raise self.fails
        assert isinstance(command, ProjectCommand)
        self.now += timedelta(seconds=1)
        self.sent.append(command)
        folded = self.of(command.app_id, command.project_id)
        if self.away:
            return Position(COMMANDS.name, 0, folded.offset + 1)
        folded.take(command, self.now)  # type: ignore[arg-type] # one of the union's
        return Position(COMMANDS.name, 0, folded.offset)
