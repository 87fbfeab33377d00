"""Tools that write, and that read a session whole; what all tools answer with.

A tool whose route asks for a role asks for it too: a request to the tools is for readers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NamedTuple, TypeVar

from msgspec import Meta, Struct, structs

from models.events.base import Role
from models.events.fields import MessageId
from models.messages.turns import IncomingTurn
from streams.api.erase.routes import Erase, ErasureAccepted, Erasures
from streams.api.live.messages import Written
from streams.api.sessions.changes import AdjustTopic, ChangedTopic, CorrectTurn, GiveFeedback, OfTurn, SessionChanges
from streams.api.sessions.history import (
    History,
    HistoryReader,
    SegmentedSession,
    SessionApp,
    SessionSegments,
    WholeHistory,
)
from streams.api.sessions.turns import OfSession, ReadSession
from streams.api.users.facts import CorrectedFact, CorrectFact, FactRoutes, OfFact
from streams.gateway.gateway import AcceptedTurn, Gateway
from streams.gateway.routes import GatewayRoutes
from streams.http.route import Accepted, route_of
from streams.http.security import asking, require_role

SHOWN_CHARS = 2_000
"""Characters of a turn that a tool shows: a model's context is what is scarce."""
NOTHING = "nothing is remembered of that"
_Request = TypeVar("_Request", bound=Struct)
_Owner = TypeVar("_Owner")


class SaidMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """One message of a conversation."""

    role: Role
    content: str
    message_id: Annotated[MessageId, Meta(description="Sent again with the same id it changes nothing.")] | None = None


class AddedTurns(Struct, frozen=True):
    """Turns that the log has, in the order in which they were given."""

    accepted: list[AcceptedTurn]


class ToolResult(NamedTuple):
    """A tool's answer, for models and for programs."""

    text: str
    structured: Struct


def as_request(kind: type[_Request], asked: Struct, /, **more: Any) -> _Request:
    """A request with the fields that a tool took for it."""
    names = kind.__struct_fields__
    return kind(**{name: value for name, value in structs.asdict(asked).items() if name in names} | more)


def session_tools(
    facts: FactRoutes | None,
    history: HistoryReader | None,
    changes: SessionChanges | None,
    erasures: Erasures | None,
    gateway: Gateway | None,
) -> dict[Callable[[Any], Awaitable[ToolResult]], type[Struct]]:
    """Tools of those parts that are there, and what they give."""

    async def get_session_history(asked: Any) -> ToolResult:
        page = await _there(history).history(as_request(WholeHistory, asked))
        lines = [f"{turn.turn} {turn.role}: {turn.content}"[:SHOWN_CHARS] for turn in page.turns]
        lines += [f"(turns {each.first}-{each.last} are missing: {each.why})" for each in page.missing]
        lines += [] if page.next is None else [f"(ask again with first={page.next})"]
        return ToolResult("\n".join(lines) or NOTHING, page)

    async def get_session_summary(asked: Any) -> ToolResult:
        known = await _there(history).segments(as_request(SessionSegments, asked))
        lines = [f"{each.first_turn}-{each.last_turn}: {each.summary}" for each in known.segments]
        lines += [f"{turn.turn} {turn.role}: {turn.content}"[:SHOWN_CHARS] for turn in known.open_turns]
        return ToolResult("\n".join(lines) or NOTHING, known)

    async def get_session_app(asked: Any) -> ToolResult:
        found = await _there(history).app(as_request(ReadSession, asked))
        return ToolResult(found.app_id, found)

    async def correct_fact(asked: Any) -> ToolResult:
        _require(FactRoutes.correct)
        done = await _there(facts).correct(as_request(OfFact, asked), as_request(CorrectFact, asked))
        if isinstance(done, Accepted):
            return ToolResult("it is noted, and will be known soon", CorrectedFact(success=False, fact=None))
        return ToolResult("it is known", done)

    async def add_turns(asked: Any) -> ToolResult:
        _require(GatewayRoutes.add)
        turns = [as_request(IncomingTurn, asked, **structs.asdict(each)) for each in asked.messages]
        accepted = await _there(gateway).accept(turns, "messages[{}]".format)
        return ToolResult(f"{len(accepted)} turns are in the log", AddedTurns(accepted))

    async def forget(asked: Any) -> ToolResult:
        _require(Erasures.erase)
        accepted = (await _there(erasures).erase(as_request(Erase, asked))).body
        return ToolResult(f"it will be erased everywhere; the proof: {accepted.status}", accepted)

    found: dict[Any, Any] = {
        get_session_history: (history, History),
        get_session_summary: (history, SegmentedSession),
        get_session_app: (history, SessionApp),
        correct_fact: (facts, CorrectedFact),
        add_turns: (gateway, AddedTurns),
        forget: (erasures, ErasureAccepted),
    }
    written = [] if changes is None else [_writing(*each) for each in _of(changes)]
    return {tool: gives for tool, (owner, gives) in found.items() if owner is not None} | dict.fromkeys(
        written, Written
    )


def _of(changes: SessionChanges) -> list[tuple[str, Callable[..., Any], type[Struct], type[Struct]]]:
    """Tools that ask one route and say where what they wrote stands."""
    return [
        ("correct_turn", changes.correct, OfTurn, CorrectTurn),
        ("adjust_topic", changes.adjust, ChangedTopic, AdjustTopic),
        ("give_feedback", changes.feedback, OfSession, GiveFeedback),
    ]


def _writing(
    name: str, method: Callable[..., Any], takes: type[Struct], body: type[Struct]
) -> Callable[[Any], Awaitable[ToolResult]]:
    async def written(asked: Any) -> ToolResult:
        _require(method)
        accepted = await method(as_request(takes, asked), as_request(body, asked))
        return ToolResult("it is in the log, and will show in a moment", accepted.body)

    written.__name__ = name
    return written


def _require(method: Callable[..., Any]) -> None:
    """Let through a caller whose role may ask a route; where another process answers it, that one looks.

    Raises:
        Problem: 403.
    """
    if asking() is not None:
        require_role(route_of(method).role)


def _there(owner: _Owner | None) -> _Owner:
    assert owner is not None, "its tools are not served without it"  # noqa: S101
    return owner
