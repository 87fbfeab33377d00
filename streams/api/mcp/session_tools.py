"""Tools that write, and that read a session whole; what all tools answer with.

A tool whose route asks for a role asks for it too: a request to the tools is for readers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NamedTuple, TypeVar, cast

from msgspec import Meta, Struct, structs

from models.events.base import Role
from models.events.fields import MessageId
from models.messages.turns import IncomingTurn
from streams.api.erase.routes import ErasureAccepted, Erasures
from streams.api.live.messages import Written
from streams.api.sessions.changes import SessionChanges
from streams.api.sessions.history import History, HistoryReader, SegmentedSession, SessionApp
from streams.api.users.facts import CorrectedFact, FactRoutes
from streams.gateway.gateway import AcceptedTurn, Gateway
from streams.gateway.routes import GatewayRoutes
from streams.http.route import Accepted, NotSeenYet, route_of
from streams.http.security import asking, require_role

SHOWN_CHARS = 2_000
"""Characters of a turn that a tool shows: a model's context is what is scarce."""
NOTHING = "nothing is remembered of that"
_Request = TypeVar("_Request", bound=Struct)
_Answer = TypeVar("_Answer")
_Writes = Callable[..., Awaitable[Accepted[Written]]]


class SaidMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """A message to add."""

    role: Role
    content: str
    message_id: Annotated[MessageId, Meta(description="Unique in the session; a repeat is ignored.")] | None = None


class AddedTurns(Struct, frozen=True):
    """Accepted turns, in the order of the messages."""

    accepted: list[AcceptedTurn]


class ToolResult(NamedTuple):
    """A tool's answer, for models and for programs."""

    text: str
    structured: Struct


def as_request(kind: type[_Request], asked: Struct, /, **more: Any) -> _Request:
    """A request with the fields that a tool took for it."""
    names = kind.__struct_fields__
    return kind(**{name: value for name, value in structs.asdict(asked).items() if name in names} | more)


async def ask(owner: Any, declared: Callable[..., Awaitable[_Answer]], asked: Struct, /, **more: Any) -> _Answer:
    """What a route answers to what a tool took for it; `more` are further fields of its body.

    Raises:
        Problem: 403, the caller's role may not ask it. Where another process answers it, that one looks.
    """
    route = route_of(declared)
    require(declared)
    taken = None if route.takes is None else as_request(route.takes, asked)
    body = None if route.body is None else as_request(route.body, asked, **more)
    by_place, by_name = route.arguments(taken, body)
    try:
        answer: _Answer = await getattr(owner, declared.__name__)(*by_place, **by_name)
    except NotSeenYet as pending:
        return cast("_Answer", pending.answer)
    return answer


def session_tools(
    facts: FactRoutes | None,
    history: HistoryReader | None,
    changes: SessionChanges | None,
    erasures: Erasures | None,
    gateway: Gateway | None,
) -> dict[Callable[[Any], Awaitable[ToolResult]], type[Struct]]:
    """Tools of those parts that are there, and what they give."""

    async def get_session_history(asked: Any) -> ToolResult:
        page = await ask(history, HistoryReader.history, asked)
        lines = [f"{turn.turn} {turn.role}: {turn.content}"[:SHOWN_CHARS] for turn in page.turns]
        lines += [f"(turns {each.first}-{each.last} are missing: {each.why})" for each in page.missing]
        lines += [] if page.next is None else [f"(for the next page, call again with first={page.next})"]
        return ToolResult("\n".join(lines) or NOTHING, page)

    async def get_session_summary(asked: Any) -> ToolResult:
        known = await ask(history, HistoryReader.segments, asked)
        lines = [f"{each.first_turn}-{each.last_turn}: {each.summary}" for each in known.segments]
        lines += [f"{turn.turn} {turn.role}: {turn.content}"[:SHOWN_CHARS] for turn in known.open_turns]
        return ToolResult("\n".join(lines) or NOTHING, known)

    async def get_session_app(asked: Any) -> ToolResult:
        found = await ask(history, HistoryReader.app, asked)
        return ToolResult(found.app_id, found)

    async def correct_fact(asked: Any) -> ToolResult:
        done = await ask(facts, FactRoutes.correct, asked)
        if isinstance(done, Accepted):
            return ToolResult("the fact is accepted and will be stored soon", CorrectedFact(success=False, fact=None))
        return ToolResult("the fact is stored", done)

    async def add_turns(asked: Any) -> ToolResult:
        require(GatewayRoutes.add)
        assert gateway is not None, "its tool is not served without it"  # noqa: S101
        turns = [as_request(IncomingTurn, asked, **structs.asdict(each)) for each in asked.messages]
        accepted = await gateway.accept(turns, "messages[{}]".format)
        return ToolResult(f"{len(accepted)} turns are stored in the log", AddedTurns(accepted))

    async def forget(asked: Any) -> ToolResult:
        accepted = (await ask(erasures, Erasures.erase, asked)).body
        return ToolResult(f"the erasure is accepted; its proof will be at {accepted.status}", accepted)

    found: dict[Any, Any] = {
        get_session_history: (history, History),
        get_session_summary: (history, SegmentedSession),
        get_session_app: (history, SessionApp),
        correct_fact: (facts, CorrectedFact),
        add_turns: (gateway, AddedTurns),
        forget: (erasures, ErasureAccepted),
    }
    changing: list[_Writes] = [SessionChanges.correct, SessionChanges.adjust, SessionChanges.feedback]
    written = [] if changes is None else [_writing(changes, each) for each in changing]
    return {tool: gives for tool, (owner, gives) in found.items() if owner is not None} | dict.fromkeys(
        written, Written
    )


def _writing(owner: SessionChanges, declared: _Writes) -> Callable[..., Any]:
    """A tool that asks one route and says where what it wrote stands."""

    async def written(asked: Any) -> ToolResult:
        accepted = await ask(owner, declared, asked)
        return ToolResult("the change is stored in the log and will be visible soon", accepted.body)

    written.__name__ = route_of(declared).operation
    return written


def require(method: Callable[..., Any]) -> None:
    """Let through a caller whose role may ask a route; where another process answers it, that one looks.

    Raises:
        Problem: 403.
    """
    if asking() is not None:
        require_role(route_of(method).role)
