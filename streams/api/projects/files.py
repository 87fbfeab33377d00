"""Saving a project page by page, and bringing one back in pieces.

`turntide memory project export` and `import` make four files of it (`models.project.files`).
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from models.events.project import ProjectImported
from models.events.project_items import ItemKind
from models.project.view import ProjectView
from streams.api.projects.answers import EXPORT_FORMAT, EXPORT_VERSION, MAX_PAGE, ExportPage
from streams.api.projects.command_messages import DeedAnswer, ImportItems, PendingDeed
from streams.api.projects.commands import COMMAND, ProjectCommandRoutes
from streams.api.projects.reading import ProjectReader
from streams.api.projects.space import PROJECTS, AskedProject, OfProject
from streams.http.route import Accepted

_FIELDS: dict[ItemKind, str] = {
    "memory": "memories",
    "episode": "episodes",
    "chunk": "chunks",
    "conversation": "conversations",
    "pending": "pending",
}


class ExportItems(OfProject, frozen=True, kw_only=True):
    """A request for a page of a project's items."""

    kind: Annotated[ItemKind, Meta(description="Of which kind.")]
    after: Annotated[str, Meta(max_length=256, description="`next` of the page before.")] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE, description="Items at most.")] = 500


class ProjectFiles:
    """Routes that save and bring back.

    Args:
        reader: Reads for the caller of a request.
        commands: Carries out what is written.
    """

    def __init__(self, reader: ProjectReader, commands: ProjectCommandRoutes) -> None:
        self._reader = reader
        self._commands = commands

    @PROJECTS.get("/export", "export_project_items", audits="text_read")
    async def export(self, asked: ExportItems) -> ExportPage:
        """A page of a project's items as they are kept, of one kind; with conversations their messages at hand."""
        named = AskedProject(asked)
        page = _page(await self._reader.view(named), asked.kind, asked.after, asked.limit)
        if page.conversations:
            page = msgspec.structs.replace(page, messages=await self._reader.messages(named, *page.conversations))
        return page

    @PROJECTS.post("/import", "import_project_items", **COMMAND)
    async def bring_back(self, asked: OfProject, body: ImportItems) -> DeedAnswer | Accepted[PendingDeed]:
        """Bring items of a saved project in; one that is there is replaced, so a repeat changes nothing."""
        return await self._commands.do(asked, ProjectImported, **msgspec.structs.asdict(body))


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
