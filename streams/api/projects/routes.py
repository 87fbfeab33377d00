"""Memory of projects over HTTP: saving and bringing back, how far it is, and the order in which all routes are tried.

Who reads needs a token for the project's app; who changes something, an admin's. A project that nothing is known of has
an empty memory; it is no error.
"""

from dataclasses import replace
from typing import Annotated

import msgspec
from msgspec import Meta

from models.events.fields import Identifier
from models.events.project import ProjectImported
from models.events.project_items import ItemKind
from models.project.view import ProjectView
from streams.api.answers import answered
from streams.api.projects import answers
from streams.api.projects.commands import COMMAND, ProjectCommandRoutes
from streams.api.projects.items import ProjectItems
from streams.api.projects.messages import PROJECTS, AskedProject, DeedAnswer, ImportItems, OfProject, PendingDeed
from streams.api.projects.reading import OfReader, ProjectReader
from streams.http.answering import ServedRoute, served_routes
from streams.http.route import Accepted
from streams.http.security import caller

_FIELDS: dict[ItemKind, str] = {
    "memory": "memories",
    "episode": "episodes",
    "chunk": "chunks",
    "conversation": "conversations",
    "pending": "pending",
}


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
    async def export(
        self,
        asked: OfProject,
        *,
        kind: Annotated[ItemKind, Meta(description="Of which kind.")],
        after: Annotated[str, Meta(max_length=256, description="`next` of the page before.")] = "",
        limit: Annotated[int, Meta(ge=1, le=answers.MAX_PAGE, description="Items at most.")] = 500,
        originals: Annotated[bool, Meta(description="With chunks the messages they were made of.")] = False,
    ) -> answers.ExportPage:
        """A page of a project's items as they are kept, of one kind; with conversations their messages at hand.

        Nothing counts as accessed.
        """
        named = AskedProject(asked)
        page = _page(await self._reader.view(named), kind, after, limit)
        if page.conversations:
            page = msgspec.structs.replace(page, messages=await self._reader.messages(named, *page.conversations))
        if page.chunks and originals:
            page = msgspec.structs.replace(page, messages=await self._reader.originals(named, *page.chunks))
        return page

    @PROJECTS.post("/import", "import_project_items", **COMMAND)
    async def bring_back(self, asked: OfProject, body: ImportItems) -> DeedAnswer | Accepted[PendingDeed]:
        """Bring items of a saved project in; one that is there is replaced, so a repeat changes nothing."""
        return await self._commands.do(asked, ProjectImported, **msgspec.structs.asdict(body))


def _page(view: ProjectView, kind: ItemKind, after: str, limit: int) -> answers.ExportPage:
    items = getattr(view, _FIELDS[kind])
    ids = [each for each in sorted(items) if each > after]
    return answers.ExportPage(
        format=answers.EXPORT_FORMAT,
        version=answers.EXPORT_VERSION,
        app_id=view.app_id,
        project_id=view.project_id,
        revision=view.revision,
        next=ids[limit - 1] if len(ids) > limit else "",
        **{_FIELDS[kind]: [items[each] for each in ids[:limit]]},
    )


_ALL = replace(PROJECTS, prefix="/v1/projects")


class ProjectStandings(OfReader):
    """Routes that say how far projects are; the last ones to be tried."""

    @PROJECTS.get("/standing", "get_project_standing", "")
    async def stats(self, asked: OfProject) -> answers.ProjectStanding:
        """How much is remembered of a project, and how much may be."""
        rules, view = self._reader.policy, await self._reader.view(AskedProject(asked))
        limits = answers.ProjectLimits(
            memories=rules.long_term.most,
            episodes=rules.narrative.most,
            pending=rules.long_term.pending,
            conversations=rules.short_term.conversations,
        )
        if view.stats is None:
            return answers.ProjectStanding(app_id=view.app_id, project_id=view.project_id, known=False, limits=limits)
        return answered(answers.ProjectStanding, view.stats, known=True, limits=limits, tokens=_tokens(view))

    @_ALL.get("", "list_projects")
    async def listed(
        self,
        *,
        app_id: Annotated[Identifier, Meta(description="The projects' app; none: the token's only one.")] | None = None,
        limit: Annotated[int, Meta(ge=1, le=answers.MAX_PAGE, description="How many at most.")] = 100,
    ) -> answers.ProjectList:
        """Projects that the token reads, those that changed last first."""
        reader = caller()
        found = await self._reader.projects.projects(reader.app_of(app_id), limit)
        mine = [each for each in found if reader.may_read(each.app_id)]
        return answers.ProjectList(
            projects=[answered(answers.ListedProject, each, changed_at=each.timestamp) for each in mine]
        )


def project_routes(reader: ProjectReader, commands: ProjectCommandRoutes) -> list[ServedRoute]:
    """Routes over projects' memory; ids may hold slashes, so those that end in a fixed word come first.

    Args:
        reader: Reads for the caller of a request.
        commands: Carries out what is written.
    """
    looking = (ProjectItems(reader), ProjectStandings(reader))
    return served_routes(reader, ProjectFiles(reader, commands), commands, *looking)


def _tokens(view: ProjectView) -> answers.HeldTokens:
    memories = view.memories.values()
    return answers.HeldTokens(
        memories=sum(each.tokens for each in memories if not each.archived),
        archived=sum(each.tokens for each in memories if each.archived),
        episodes=sum(each.tokens for each in view.episodes.values()),
        chunks=sum(each.summary_tokens for each in view.chunks.values()),
    )
