"""Tools of the Model Context Protocol over users' and projects' memory: each asks a declared route.

What a tool takes are fields of the route's own parameters and body, with their limits and descriptions.
"""

from __future__ import annotations

import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from mcp.types import Tool, ToolAnnotations
from msgspec import NODEFAULT, Meta, Struct, field, structs

from models.events.base import Output
from models.messages.turns import IncomingTurn
from models.retrieval.context_window import TokenBudget
from streams.api.erase.routes import Erasures
from streams.api.listed import LISTINGS, Listing
from streams.api.mcp.session_tools import NOTHING, SHOWN_CHARS, SaidMessage, ToolResult, ask, session_tools
from streams.api.projects.commands import ProjectCommandRoutes
from streams.api.projects.messages import BudgetOverrides, FoundItem
from streams.api.projects.reading import ProjectReader
from streams.api.sessions.changes import SessionChanges
from streams.api.sessions.history import HistoryReader
from streams.api.users.facts import FactRoutes
from streams.api.users.freshness import Freshness
from streams.api.users.messages import AssembledContext, CaughtUp, FactAnswer, Found, TurnHit, UserLanguage
from streams.api.users.reading import MemoryReader
from streams.gateway.gateway import Gateway
from streams.http.field_rules import require_printable_ids
from streams.http.pages import source
from streams.http.problems import undecodable
from streams.http.route import Accepted, routes_of


class _ForModels(Struct, kw_only=True):
    """Arguments that only tools have."""

    content: Annotated[str, Meta(min_length=1, max_length=1_000, pattern=r"\S")]
    messages: Annotated[list[SaidMessage], Meta(min_length=1, max_length=100, description="Messages in order.")]
    token_budget: Annotated[int, Meta(ge=64, le=1_000_000, description="Token budget of the context.")] = 4_000


_TOOLS = tomllib.loads(source("streams/api/mcp/tools.toml"))
_ASKED = (MemoryReader, ProjectReader, ProjectCommandRoutes, FactRoutes, HistoryReader, SessionChanges, Erasures)
_SOURCES: dict[str, tuple[type[Struct], ...]] = {
    **{
        route.operation: tuple(each for each in (route.takes, route.body) if each is not None)
        for kind in _ASKED
        for route in routes_of(kind)
    },
    "incoming_turn": (IncomingTurn,),
    "for_models": (_ForModels,),
}
"""By the operation of a route, what it takes."""


class ListedFacts(Struct, frozen=True):
    """Active facts of a user."""

    facts: list[FactAnswer]
    known: bool = True
    """Whether the user is known."""
    caught_up: CaughtUp = None
    language: UserLanguage = ""


class ToldContext(Struct, frozen=True):
    """A context for a model, without its parts."""

    text: str
    total_tokens: int
    budget: TokenBudget
    warnings: list[str]


class ToldItem(Struct, frozen=True):
    """A search result, reduced to what a model needs."""

    kind: str
    id: str
    text: str
    score: float


class ToldItems(Struct, frozen=True):
    """Search results, best first."""

    results: list[ToldItem]


class ToldDeed(Struct, frozen=True):
    """Result of adding a memory."""

    outcome: str
    memory_id: str


class ServedTool(NamedTuple):
    """A tool and what it does."""

    tool: Tool
    call: Callable[[Mapping[str, Any]], Awaitable[ToolResult]]
    reads: bool
    """Whether it gives words and changes nothing; else it acts."""
    anonymous: bool = False
    """Whether its note does not say whom it is about: it would outlive an erasure."""


class AskedMemory(NamedTuple):
    """Whose routes the tools ask: those of this process, or of a role over HTTP (`jobs.shared.role_api`)."""

    users: MemoryReader
    projects: ProjectReader
    commands: ProjectCommandRoutes
    listings: Sequence[Any] = ()
    """Of `streams.api.listed.LISTINGS`, in their order."""
    facts: FactRoutes | None = None
    history: HistoryReader | None = None
    changes: SessionChanges | None = None
    erasures: Erasures | None = None
    gateway: Gateway | None = None
    """Takes turns; None, of it and of these: their tools are not served."""


def tools_of(memory: AskedMemory) -> list[ServedTool]:
    """Every tool."""
    users, projects, commands, listings = memory[:4]

    async def search_memory(asked: Any) -> ToolResult:
        # One after the other: a store that serves one request at a time gains nothing from two.
        turns = await ask(users, MemoryReader.search, asked, kind="turns")
        episodes = await ask(users, MemoryReader.search, asked, kind="episodes")
        found = structs.replace(episodes, turns=list(map(_shown, turns.turns)))
        return ToolResult(_found_text(found) or _none(Freshness(found.known, found.caught_up), NOTHING), found)

    async def get_context(asked: Any) -> ToolResult:
        assembled = await ask(users, MemoryReader.context, asked)
        return ToolResult(assembled.prompt, assembled)

    async def list_facts(asked: Any) -> ToolResult:
        answer = await ask(users, MemoryReader.facts, asked)
        fresh = Freshness.of(answer.headers)
        lines = [f"- {fact.category} {fact.key}: {fact.value}" for fact in answer.body]
        text = "\n".join(lines) or _none(fresh, "no facts of this user are stored")
        return ToolResult(text, ListedFacts(answer.body, *fresh))

    async def project_context(asked: Any) -> ToolResult:
        budget = BudgetOverrides(total_tokens=asked.token_budget)
        built = await ask(projects, ProjectReader.context, asked, budget=budget, related_depth=1)
        result = ToldContext(built.text, built.total_tokens, built.budget, built.warnings)
        return ToolResult(built.text or NOTHING, result)

    async def search_project(asked: Any) -> ToolResult:
        found = (await ask(projects, ProjectReader.search, asked)).results
        result = [ToldItem(each.kind, each.id, each.text, each.score) for each in found]
        return ToolResult("\n".join(map(_line, found)) or NOTHING, ToldItems(result))

    async def add_project_memory(asked: Any) -> ToolResult:
        done = await ask(commands, ProjectCommandRoutes.add, asked)
        if isinstance(done, Accepted):
            return ToolResult("the memory is accepted and will be stored soon", ToldDeed("pending", ""))
        text = "the memory existed already" if done.outcome == "unchanged" else "the memory is stored"
        return ToolResult(f"{text}: {done.item_id}", ToldDeed(done.outcome, done.item_id))

    gives: dict[Callable[[Any], Awaitable[ToolResult]], type[Struct]] = {
        search_memory: Found,
        get_context: AssembledContext,
        list_facts: ListedFacts,
        project_context: ToldContext,
        search_project: ToldItems,
        add_project_memory: ToldDeed,
        **session_tools(*memory[4:]),
    }
    own = [
        _served(
            _TOOLS[each.__name__]["title"],
            _taken(each.__name__),
            told,
            each,
            reads=each.__name__ in _READING,
            destroys=each.__name__ == "forget",
        )
        for each, told in gives.items()
    ]
    return [*own, *map(_listed, LISTINGS, listings)]


_READING = {
    *("search_memory", "get_context", "list_facts", "project_context", "search_project"),
    *("get_session_history", "get_session_summary", "get_session_app"),
}


def _listed(kind: type[Listing], listing: Any) -> ServedTool:
    """The tool of a listing: what each event says beside what all outputs say."""
    event, (route,) = kind.emits.event, routes_of(kind)
    gives = msgspec.defstruct(f"{kind.__name__}Told", [("results", list[event])], frozen=True)  # type: ignore[valid-type]
    own = [name for name in event.__struct_fields__ if name not in Output.__struct_fields__]

    async def answer(asked: Any) -> ToolResult:
        found = await getattr(listing, route.operation)(asked)
        lines = [", ".join(f"{name}: {getattr(each, name)}"[:SHOWN_CHARS] for name in own) for each in found]
        return ToolResult("\n".join(f"- {line}" for line in lines) or NOTHING, gives(found))

    answer.__name__ = route.operation
    return _served(route.operation.replace("_", " ").capitalize(), kind.takes, gives, answer)


def _taken(tool: str) -> type[Struct]:
    """What a tool takes: fields of requests, those that must be given first."""
    told, taken = _TOOLS[tool], list[tuple[str, Any, Any]]()
    changed = told.get("defaults", {})
    for kind, names in told["takes"]:
        known = {each.name: each for source in _SOURCES[kind] for each in structs.fields(source)}
        for each in map(known.__getitem__, names.split()):
            default = NODEFAULT if each.required and each.name not in changed else changed.get(each.name, each.default)
            taken.append((each.name, each.type, field(default=default, name=each.encode_name)))
    taken.sort(key=lambda each: each[2].default is not NODEFAULT)
    named = "".join(map(str.capitalize, tool.split("_")))
    documented = {"__doc__": told["about"]}
    return msgspec.defstruct(f"{named}Arguments", taken, namespace=documented, frozen=True, forbid_unknown_fields=True)


def _served(
    title: str,
    takes: type[Struct],
    gives: type[Struct],
    answer: Callable[[Any], Awaitable[ToolResult]],
    *,
    reads: bool = True,
    destroys: bool = False,
) -> ServedTool:
    _, definitions = msgspec.json.schema_components([takes, gives], ref_template="#/$defs/{name}")
    described = {
        key: value for key, value in definitions[takes.__name__].items() if key not in {"title", "description"}
    }
    tool = Tool(
        name=answer.__name__,
        title=title,
        description=(takes.__doc__ or "").strip(),
        input_schema={**described, "$defs": definitions},
        output_schema={**definitions[gives.__name__], "$defs": definitions},
        annotations=ToolAnnotations(read_only_hint=reads, destructive_hint=destroys, open_world_hint=False),
    )

    async def call(given: Mapping[str, Any]) -> ToolResult:
        try:
            asked = msgspec.convert(given, takes)
        except msgspec.ValidationError as error:
            raise undecodable(error, takes) from None
        require_printable_ids(asked)
        return await answer(asked)

    return ServedTool(tool, call, reads, anonymous=destroys)


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
    return "\n".join(lines)


def _none(fresh: Freshness, said: str) -> str:
    """Why nothing is given."""
    if fresh.caught_up is False:
        return f"{said} yet: the latest turns are not in memory, call again in a second"
    return said if fresh.known else f"{said}: the user, session or app is unknown"


def _line(found: FoundItem) -> str:
    label: str = found.kind
    if found.memory is not None:
        label = f"{found.memory.type.value}, {found.memory.valid_from:%Y-%m-%d}"
    doubt = "" if not found.contradicted_by else " (another memory contradicts this)"
    return f"- [{label}] {found.text}{doubt}"
