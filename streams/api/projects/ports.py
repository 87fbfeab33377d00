"""Ports of the routes over project memory, for reading and writing; `streams.index.project_memory` fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from models.events.project import ProjectChanged
from models.project.view import ProjectView
from models.retrieval.relevance import RetrievalQuery, Retrieved


class Projects(Protocol):
    """Memory of projects, as indexed. A project that the caller may not read is one that nothing happened to."""

    async def standing(self, app_id: str, project_id: str) -> ProjectChanged | None:
        """As last indexed; None for a project that nothing happened to."""
        ...

    async def projects(self, app_id: str | None, limit: int) -> Sequence[ProjectChanged]:
        """Of an app, or all that may be read: those that changed last, at most `limit`."""
        ...

    async def view(self, app_id: str, project_id: str) -> ProjectView | None:
        """Everything of a project, as of its standing; None for one that nothing happened to."""
        ...

    async def find(self, view: ProjectView, query: RetrievalQuery, at: datetime) -> Sequence[Retrieved]:
        """What answers the query by the hybrid search, best first."""
        ...


class Accesses(Protocol):
    """What readers retrieved, noted for the project's memory (`streams.api.projects.accesses`)."""

    def record(self, app_id: str, project_id: str, ids: Iterable[str]) -> None:
        """Note memories and episodes; nobody waits for it."""
        ...
