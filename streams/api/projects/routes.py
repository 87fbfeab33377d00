"""Memory of projects over HTTP: how far it is, and the order in which all its routes are tried.

Who reads needs a token for the project's app; who changes something, an admin's. A project that nothing is known of has
an empty memory; it is no error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from msgspec import Meta, Struct

from models.events.fields import Identifier
from streams.api.projects.answers import MAX_PAGE, ProjectList, ProjectStanding
from streams.api.projects.commands import ProjectCommandRoutes
from streams.api.projects.files import ProjectFiles
from streams.api.projects.graph import ProjectGraph
from streams.api.projects.items import ProjectItems
from streams.api.projects.reading import OfReader, ProjectReader
from streams.api.projects.space import PROJECTS, AskedProject, OfProject
from streams.http.answering import ServedRoute, served_routes

_ALL = replace(PROJECTS, prefix="/v1/projects")


class ListProjects(Struct, frozen=True, kw_only=True):
    """A request for projects."""

    app_id: Annotated[Identifier, Meta(description="The projects' app; none: the token's only one.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE, description="How many at most.")] = 100


class ProjectStandings(OfReader):
    """Routes that say how far projects are; the last ones to be tried."""

    @PROJECTS.get("/standing", "get_project_standing", "")
    async def stats(self, asked: OfProject) -> ProjectStanding:
        """How much is remembered of a project, and how much may be."""
        return await self._reader.stats(AskedProject(asked))

    @_ALL.get("", "list_projects")
    async def listed(self, asked: ListProjects) -> ProjectList:
        """Projects that the token reads, those that changed last first."""
        return await self._reader.projects(asked.app_id, asked.limit)


def project_routes(reader: ProjectReader, commands: ProjectCommandRoutes) -> list[ServedRoute]:
    """Routes over projects' memory; ids may hold slashes, so those that end in a fixed word come first.

    Args:
        reader: Reads for the caller of a request.
        commands: Carries out what is written.
    """
    looking = (ProjectItems(reader), ProjectGraph(reader), ProjectStandings(reader))
    return served_routes(reader, ProjectFiles(reader, commands), commands, *looking)
