"""MCP tools over users' memory and over projects': arguments and answers (`streams.api.mcp.server` serves them)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

import msgspec
from mcp.types import Tool, ToolAnnotations
from msgspec import Meta, Struct, structs

from models.events.fields import Identifier
from models.events.user import FactCategory
from models.retrieval.context import MIN_TOKENS
from streams.api.projects.tools import (
    AddProjectMemoryArguments,
    ProjectContextArguments,
    ProjectMemoryTools,
    SearchProjectArguments,
    ToldContext,
    ToldDeed,
    ToldItems,
    told_context,
    told_deed,
    told_items,
)
from streams.api.users.messages import (
    MAX_TOKEN_BUDGET,
    AppId,
    AssembleContext,
    AssembledContext,
    FactAnswer,
    Found,
    InjectionPoint,
    QueryText,
    SearchMemory,
    TopK,
    TurnHit,
    UserFacts,
    UserId,
    WithAppMemories,
)
from streams.http.problems import undecodable

SHOWN_CHARS = 2_000
"""Characters of a turn that a search shows: a model's context is what is scarce."""
_Arguments = TypeVar("_Arguments")


class SearchMemoryArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """What was said, by words and likeness: single turns, and episodes of many turns."""

    query: QueryText
    user_id: UserId
    app_id: AppId | None = None
    top_k: TopK = 5


class GetContextArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """What to know before answering a question: memories of the app, facts, episodes, recent turns, as one prompt."""

    query: QueryText
    user_id: UserId
    app_id: AppId | None = None
    session_id: (
        Annotated[Identifier, Meta(description="Whose last turns; none: the user's, of all sessions.")] | None
    ) = None
    token_budget: Annotated[int, Meta(ge=MIN_TOKENS, le=MAX_TOKEN_BUDGET, description="Of the whole prompt.")] = 2_000
    app_memories: WithAppMemories | None = None
    injection_point: InjectionPoint | None = None


class ListFactsArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """What holds of a user: identity, preferences, constraints and standing instructions, the most important first."""

    user_id: UserId
    app_id: AppId | None = None
    category: FactCategory | None = None


class ListedFacts(Struct, frozen=True):
    """Facts of a user that hold."""

    facts: list[FactAnswer]


class Memory(Protocol):
    """What the tools read; raises `problems.Problem` or `models.errors.StoreUnavailable`."""

    async def search(self, request: SearchMemory) -> Found:
        """Turns or episodes, best first."""
        ...

    async def context(self, request: AssembleContext) -> AssembledContext:
        """The whole prompt within a budget."""
        ...

    async def facts(self, request: UserFacts) -> list[FactAnswer]:
        """Facts of a user."""
        ...


class Told(NamedTuple):
    """A tool's answer, for models and for programs."""

    text: str
    structured: Struct


class Served(NamedTuple):
    """A tool and what it does."""

    tool: Tool
    call: Callable[[Mapping[str, Any]], Awaitable[Told]]

    @property
    def reads(self) -> bool:
        """Whether it gives words and changes nothing; else it acts."""
        return self.tool.annotations is not None and bool(self.tool.annotations.read_only_hint)


def memory_tools(memory: Memory) -> Sequence[Served]:
    """Tools over users' memory."""

    async def search_memory(given: Mapping[str, Any]) -> Told:
        asked = _arguments(given, SearchMemoryArguments)
        # One after the other: a store that serves one request at a time gains nothing from two.
        turns = await memory.search(_search(asked, "turns"))
        episodes = await memory.search(_search(asked, "episodes"))
        found = Found(turns=list(map(_shown, turns.turns)), episodes=episodes.episodes)
        return Told(_found_text(found), found)

    async def get_context(given: Mapping[str, Any]) -> Told:
        asked = _arguments(given, GetContextArguments)
        assembled = await memory.context(AssembleContext(**structs.asdict(asked)))
        return Told(assembled.prompt, assembled)

    async def list_facts(given: Mapping[str, Any]) -> Told:
        asked = _arguments(given, ListFactsArguments)
        facts = await memory.facts(UserFacts(**structs.asdict(asked)))
        lines = [f"- {fact.category} {fact.key}: {fact.value}" for fact in facts]
        return Told("\n".join(lines) or "nothing is known of this user", ListedFacts(facts))

    return (
        Served(_tool("search_memory", "Search memory", SearchMemoryArguments, Found), search_memory),
        Served(_tool("get_context", "Get context", GetContextArguments, AssembledContext), get_context),
        Served(_tool("list_facts", "List facts", ListFactsArguments, ListedFacts), list_facts),
    )


def project_tools(projects: ProjectMemoryTools) -> Sequence[Served]:
    """Tools over projects' memory."""

    async def project_context(given: Mapping[str, Any]) -> Told:
        return Told(*await told_context(projects, _arguments(given, ProjectContextArguments)))

    async def search_project(given: Mapping[str, Any]) -> Told:
        return Told(*await told_items(projects, _arguments(given, SearchProjectArguments)))

    async def add_project_memory(given: Mapping[str, Any]) -> Told:
        return Told(*await told_deed(projects, _arguments(given, AddProjectMemoryArguments)))

    adding = _tool("add_project_memory", "Add project memory", AddProjectMemoryArguments, ToldDeed, reads=False)
    return (
        Served(_tool("project_context", "Get project context", ProjectContextArguments, ToldContext), project_context),
        Served(_tool("search_project", "Search project", SearchProjectArguments, ToldItems), search_project),
        Served(adding, add_project_memory),
    )


def _tool(name: str, title: str, takes: type[Struct], gives: type[Struct], *, reads: bool = True) -> Tool:
    (_, output), definitions = msgspec.json.schema_components([takes, gives], ref_template="#/$defs/{name}")
    _ = output
    described = {
        key: value for key, value in definitions[takes.__name__].items() if key not in {"title", "description"}
    }
    return Tool(
        name=name,
        title=title,
        description=(takes.__doc__ or "").strip(),
        input_schema={**described, "$defs": definitions},
        output_schema={**definitions[gives.__name__], "$defs": definitions},
        annotations=ToolAnnotations(read_only_hint=reads, destructive_hint=False, open_world_hint=False),
    )


def _arguments(given: Mapping[str, Any], kind: type[_Arguments]) -> _Arguments:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise undecodable(error, kind) from None


def _search(asked: SearchMemoryArguments, kind: str) -> SearchMemory:
    return msgspec.convert({**structs.asdict(asked), "kind": kind}, SearchMemory)


def _shown(hit: TurnHit) -> TurnHit:
    content = hit.turn.content
    if len(content) <= SHOWN_CHARS:
        return hit
    return structs.replace(hit, turn=structs.replace(hit.turn, content=content[: SHOWN_CHARS - 1] + "…"))


def _found_text(found: Found) -> str:
    lines = [
        f"- {e.turn_range} ({e.started_at:%Y-%m-%d}): {e.summary}" for e in (hit.episode for hit in found.episodes)
    ]
    lines += [
        f"- {t.timestamp:%Y-%m-%d}, session {t.session_id}, turn {t.turn}, {t.role}: {t.content}"
        for t in (hit.turn for hit in found.turns)
    ]
    return "\n".join(lines) or "nothing is remembered of that"
