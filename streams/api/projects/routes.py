"""Memory of projects over HTTP (seed 004): questions to it, and how far it is. Look-ups, deeds and files are beside it.

Who reads needs a token for the project's app; who changes something, an admin's.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from streams.api import openapi
from streams.api.projects import examples
from streams.api.projects.answers import MAX_PAGE, ProjectList, ProjectStanding
from streams.api.projects.commands import Doing, add_deeds
from streams.api.projects.files import add_files
from streams.api.projects.graph import add_graph
from streams.api.projects.items import add_items
from streams.api.projects.messages import BuildContext, FoundItems, ProjectContext, RetrieveMemories, SearchProject
from streams.api.projects.reading import ProjectReader
from streams.api.projects.space import AppIdInQuery, AskedProject, ProjectIdInPath
from streams.http.audit import READS_TEXT
from streams.http.bodies import json_answer, read_body

_RETRIEVE = msgspec.json.Decoder(RetrieveMemories)
_CONTEXT = msgspec.json.Decoder(BuildContext)
_SEARCH = msgspec.json.Decoder(SearchProject)
_Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="How many at most.", examples=[100])]


def projects_router(reader: ProjectReader, doing: Doing) -> APIRouter:
    """Routes over projects' memory. A project that nothing is known of has an empty one; it is no error.

    Args:
        reader: Reads for the caller of a request.
        doing: Carries out what is written.
    """
    router = APIRouter(prefix="/v1/projects", tags=["projects"])
    _add_questions(router, reader)
    add_files(router, reader, doing)
    add_deeds(router, reader, doing)
    add_items(router, reader)
    add_graph(router, reader)
    _add_standing(router, reader)
    return router


def _add_questions(router: APIRouter, reader: ProjectReader) -> None:
    @router.post(
        "/{project_id:path}/retrieve",
        dependencies=READS_TEXT,
        openapi_extra=openapi.body(RetrieveMemories, examples.RETRIEVE),
        responses=openapi.answer(FoundItems, examples.FOUND),
    )
    async def retrieve(request: Request, project_id: ProjectIdInPath, app_id: AppIdInQuery = None) -> Response:
        """The memories and episodes that matter to a question, with what their relevance is made of."""
        asked = AskedProject(app_id, project_id)
        return json_answer(await reader.retrieve(asked, await read_body(request, _RETRIEVE)))

    @router.post(
        "/{project_id:path}/context",
        dependencies=READS_TEXT,
        openapi_extra=openapi.body(BuildContext, examples.CONTEXT),
        responses=openapi.answer(ProjectContext, examples.BUILT),
    )
    async def context(request: Request, project_id: ProjectIdInPath, app_id: AppIdInQuery = None) -> Response:
        """What a language model is to be told, within a token budget; warnings name what is not in."""
        asked = AskedProject(app_id, project_id)
        return json_answer(await reader.context(asked, await read_body(request, _CONTEXT)))

    @router.post(
        "/{project_id:path}/search",
        dependencies=READS_TEXT,
        openapi_extra=openapi.body(SearchProject, examples.SEARCH),
        responses=openapi.answer(FoundItems, examples.FOUND),
    )
    async def search(request: Request, project_id: ProjectIdInPath, app_id: AppIdInQuery = None) -> Response:
        """Memories, episodes and chunks that speak of something, best first; nothing counts as accessed."""
        asked = AskedProject(app_id, project_id)
        return json_answer(await reader.search(asked, await read_body(request, _SEARCH)))


def _add_standing(router: APIRouter, reader: ProjectReader) -> None:
    described = openapi.answer(ProjectStanding, examples.STANDING)

    @router.get("/{project_id:path}", responses=described)
    @router.get("/{project_id:path}/standing", responses=described)  # decorators add from below: it comes first
    async def standing(project_id: ProjectIdInPath, app_id: AppIdInQuery = None) -> Response:
        """How much is remembered of a project, and how much may be."""
        return json_answer(await reader.standing(AskedProject(app_id, project_id)))

    @router.get("", responses=openapi.answer(ProjectList, examples.PROJECTS))
    async def listed(app_id: AppIdInQuery = None, limit: _Limit = 100) -> Response:
        """Projects that the token reads, those that changed last first."""
        return json_answer(await reader.projects(app_id, limit))
