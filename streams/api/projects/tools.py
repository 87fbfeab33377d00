"""Tools of assistants over projects' memory: a ready context, a search, and a memory written by hand."""

from __future__ import annotations

from typing import Annotated, Protocol

from msgspec import Meta, Struct

from models.events.fields import Identifier
from models.events.project_items import MemoryType
from models.retrieval.token_budget import TokenBudget
from streams.api.projects.command_messages import AddMemory, DeedAnswer, PendingDeed
from streams.api.projects.commands import Doing
from streams.api.projects.messages import (
    BudgetOverrides,
    BuildContext,
    FoundItem,
    FoundItems,
    ProjectContext,
    SearchProject,
)
from streams.api.projects.reading import ProjectReader
from streams.api.projects.space import AskedProject

_ProjectId = Annotated[Identifier, Meta(description="The project, as the producer of the turns named it.")]
_AppId = Annotated[Identifier, Meta(description="The project's app; none: the token's only one.")]
_Query = Annotated[str, Meta(min_length=1, max_length=8_000, pattern=r"\S", description="A question.")]


class ProjectContextArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """What a project decided, prefers and aims at that bears on a question: memories and messages, as one context."""

    project_id: _ProjectId
    query: _Query
    app_id: _AppId | None = None
    conversation_id: Annotated[Identifier, Meta(description="Whose messages; none: memories only.")] | None = None
    token_budget: Annotated[int, Meta(ge=64, le=1_000_000, description="Of the context.")] = 4_000


class SearchProjectArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Decisions, facts, constraints, goals and key moments of a project, by words and likeness."""

    project_id: _ProjectId
    query: _Query
    app_id: _AppId | None = None
    top_k: Annotated[int, Meta(ge=1, le=100)] = 5


class AddProjectMemoryArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Write down what a project should know from now on; an admin's token is needed."""

    project_id: _ProjectId
    content: Annotated[str, Meta(min_length=1, max_length=1_000, pattern=r"\S")]
    type: MemoryType
    app_id: _AppId | None = None
    subject: Annotated[str, Meta(max_length=128, description="What a decision is about: a newer one replaces it.")] = ""


class ToldContext(Struct, frozen=True):
    """A context for a model, without what it was made of."""

    text: str
    total_tokens: int
    budget: TokenBudget
    warnings: list[str]


class ToldItem(Struct, frozen=True):
    """Something found, as far as a model needs it."""

    kind: str
    id: str
    text: str
    score: float


class ToldItems(Struct, frozen=True):
    """What was found, best first."""

    results: list[ToldItem]


class ToldDeed(Struct, frozen=True):
    """What came of a memory that was to be written."""

    outcome: str
    memory_id: str


class ProjectMemoryTools(Protocol):
    """What the tools ask; raises `problems.Problem` or `models.errors.StoreUnavailable`."""

    async def project_context(self, app_id: str | None, project_id: str, request: BuildContext) -> ProjectContext:
        """What a language model is to be told."""
        ...

    async def search_project(self, app_id: str | None, project_id: str, request: SearchProject) -> FoundItems:
        """What speaks of something."""
        ...

    async def add_project_memory(
        self, app_id: str | None, project_id: str, request: AddMemory
    ) -> DeedAnswer | PendingDeed:
        """Have something known."""
        ...


class ProjectTools:
    """`ProjectMemoryTools` in the role itself.

    Args:
        reader: Reads for the caller of a request.
        doing: Carries out what is written.
    """

    def __init__(self, reader: ProjectReader, doing: Doing) -> None:
        self._reader = reader
        self._doing = doing

    async def project_context(self, app_id: str | None, project_id: str, request: BuildContext) -> ProjectContext:
        """As the port says."""
        return await self._reader.context(AskedProject(app_id, project_id), request)

    async def search_project(self, app_id: str | None, project_id: str, request: SearchProject) -> FoundItems:
        """As the port says."""
        return await self._reader.search(AskedProject(app_id, project_id), request)

    async def add_project_memory(
        self, app_id: str | None, project_id: str, request: AddMemory
    ) -> DeedAnswer | PendingDeed:
        """As the port says."""
        return await self._doing.add(AskedProject(app_id, project_id), request)


async def told_context(tools: ProjectMemoryTools, asked: ProjectContextArguments) -> tuple[str, ToldContext]:
    """The text for a model, and the same for a program."""
    request = BuildContext(
        query=asked.query,
        conversation_id=asked.conversation_id,
        budget=BudgetOverrides(total_tokens=asked.token_budget),
        related_depth=1,
    )
    built = await tools.project_context(asked.app_id, asked.project_id, request)
    text = built.text or "nothing is remembered of that"
    return text, ToldContext(built.text, built.total_tokens, built.budget, built.warnings)


async def told_items(tools: ProjectMemoryTools, asked: SearchProjectArguments) -> tuple[str, ToldItems]:
    """A line for each, and the same for a program."""
    request = SearchProject(query=asked.query, top_k=asked.top_k)
    found = (await tools.search_project(asked.app_id, asked.project_id, request)).results
    told = [ToldItem(each.kind, each.id, each.text, each.score) for each in found]
    return "\n".join(map(_line, found)) or "nothing is remembered of that", ToldItems(told)


async def told_deed(tools: ProjectMemoryTools, asked: AddProjectMemoryArguments) -> tuple[str, ToldDeed]:
    """What came of it, in a sentence, and the same for a program."""
    request = AddMemory(content=asked.content, type=asked.type, subject=asked.subject)
    done = await tools.add_project_memory(asked.app_id, asked.project_id, request)
    if isinstance(done, PendingDeed):
        return "it is noted, and will be known soon", ToldDeed("pending", "")
    text = "it was known already" if done.outcome == "unchanged" else "it is known"
    return f"{text}, as {done.item_id}", ToldDeed(done.outcome, done.item_id)


def _line(found: FoundItem) -> str:
    label: str = found.kind
    if found.memory is not None:
        label = f"{found.memory.type.value}, {found.memory.valid_from:%Y-%m-%d}"
    doubt = "" if not found.contradicted_by else " (another memory contradicts this)"
    return f"- [{label}] {found.text}{doubt}"
