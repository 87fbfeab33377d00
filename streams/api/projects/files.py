"""Saving a project page by page, and bringing one back in pieces (seed 004, Storage Structure).

`turntide project export` and `import` make the seed's four files of it (`models.project.files`).
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from models.events.project import ProjectImported
from models.events.project_items import ItemKind
from models.project.view import ProjectView
from streams.api import openapi
from streams.api.projects import examples
from streams.api.projects.answers import EXPORT_FORMAT, EXPORT_VERSION, MAX_PAGE, ExportPage
from streams.api.projects.command_messages import ImportItems
from streams.api.projects.commands import ADMINS, DONE, Doing
from streams.api.projects.reading import ProjectReader
from streams.api.projects.space import AppIdInQuery, AskedProject, ProjectIdInPath
from streams.http.audit import READS_TEXT
from streams.http.bodies import json_answer, read_body

_IMPORT = msgspec.json.Decoder(ImportItems)
_Kind = Annotated[ItemKind, Query(description="Of which kind.", examples=["memory"])]
_After = Annotated[str, Query(max_length=256, description="`next` of the page before.", examples=[examples.MEMORY_ID])]
_Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="Items at most.", examples=[500])]


_FIELDS: dict[ItemKind, str] = {
    "memory": "memories",
    "episode": "episodes",
    "chunk": "chunks",
    "conversation": "conversations",
    "pending": "pending",
}


def add_files(router: APIRouter, reader: ProjectReader, doing: Doing) -> None:
    """Routes that save and bring back."""

    @router.get(
        "/{project_id:path}/export", dependencies=READS_TEXT, responses=openapi.answer(ExportPage, examples.EXPORTED)
    )
    async def export(
        project_id: ProjectIdInPath,
        kind: _Kind,
        app_id: AppIdInQuery = None,
        after: _After = "",
        limit: _Limit = 500,
    ) -> Response:
        """A page of a project's items as they are kept, of one kind; with conversations their messages at hand."""
        asked = AskedProject(app_id, project_id)
        page = _page(await reader.view(asked), kind, after, limit)
        if page.conversations:
            page = msgspec.structs.replace(page, messages=await reader.messages(asked, *page.conversations))
        return json_answer(page)

    @router.post(
        "/{project_id:path}/import",
        dependencies=ADMINS,
        openapi_extra=openapi.body(ImportItems, examples.IMPORT),
        responses=DONE,
    )
    async def bring_back(request: Request, project_id: ProjectIdInPath, app_id: AppIdInQuery = None) -> Response:
        """Bring items of a saved project in; one that is there is replaced, so a repeat changes nothing."""
        asked = AskedProject(app_id, project_id)
        body = await read_body(request, _IMPORT)
        fields = {name: getattr(body, name) for name in body.__struct_fields__}
        return await doing.do(asked, ProjectImported(**asked.command(reader.now()), **fields))


def _page(view: ProjectView, kind: ItemKind, after: str, limit: int) -> ExportPage:
    items = getattr(view, _FIELDS[kind])
    ids = [each for each in sorted(items) if each > after]
    return ExportPage(
        format=EXPORT_FORMAT,
        version=EXPORT_VERSION,
        app_id=view.app_id,
        project_id=view.project_id,
        revision=view.revision,
        next=ids[limit - 1] if len(ids) > limit else "",
        **{_FIELDS[kind]: [items[each] for each in ids[:limit]]},
    )
