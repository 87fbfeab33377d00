"""Traced calls of language models, as turns.

A call repeats the history of its conversation, so earlier calls had most of its messages. Of each call are read

* its answer, and the messages of its history since the previous answer: these are new;
* the four turns before these: earlier calls had them, so they are repeats, unless a call was lost;
* the instructions at the beginning, while the history has only one user turn.

Earlier messages are not read again, so a history may be longer than a session's list of known ids. A turn's
`message_id` is derived from its conversation, role and text, and the number of equal messages before it. So it does not
change if an application drops the beginning of a history, changes the instructions, or sends one message to two models.
Each call is read independently, so calls in any order, repeated, or split into several requests give the same turns.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from models.events.base import Role, Scalar
from models.events.ids import named_id
from models.messages.dialects import messages_in, numbered
from models.messages.openai import ChatMessage, parts_of
from models.messages.turns import IncomingTurn
from models.text.tables import read_table
from models.wire.codec import UNDECODABLE

_TABLE = read_table("conventions", "messages")
_REPEATED_TURNS = 4
_LONGEST_ID = 256
_EPOCH = datetime.min.replace(tzinfo=UTC)


class SpanEvent(Struct, frozen=True):
    """An event of a span, or a log record; `said` has its attributes and its body."""

    name: str
    said: Mapping[str, Any]


class TracedSpan(Struct, frozen=True, kw_only=True):
    """The parts of a span that are used for conversations.

    Attributes:
        attributes: Attributes by flat name, `gen_ai.prompt.0.content`.
        events: Events in order.
        resource: Attributes of its resource.
        trace_id: Trace id in hexadecimal digits; empty: none.
        started_at: Start time; None: missing.
        ended_at: End time; None: missing.
    """

    attributes: Mapping[str, Any]
    events: Sequence[SpanEvent] = ()
    resource: Mapping[str, Any] = {}
    trace_id: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None


def turns_in(spans: Iterable[TracedSpan]) -> list[IncomingTurn]:
    """Turns of spans, without repeats, in the order of the model calls."""
    return each_once(turns_by_call(spans))


def turns_by_call(spans: Iterable[TracedSpan]) -> list[list[IncomingTurn]]:
    """The turns to read of each model call, in order; other spans, and spans without messages, give none."""
    ordered = sorted(spans, key=lambda span: span.started_at or span.ended_at or _EPOCH)
    return [turns for span in ordered if (turns := turns_of(span))]


def each_once(calls: Iterable[Iterable[IncomingTurn]]) -> list[IncomingTurn]:
    """Turns of several calls without repeats."""
    found: dict[object, IncomingTurn] = {}
    for turn in chain.from_iterable(calls):
        found.setdefault((turn.app_id, turn.session_id, turn.message_id), turn)
    return list(found.values())


def turns_of(span: TracedSpan) -> list[IncomingTurn]:
    """The turns to read of one span, see the module's docstring."""
    attributes = _with_inner(span.attributes)
    if any(attributes[name] not in calls for name, calls in _TABLE["calls"].items() if name in attributes):
        return []
    try:
        history, answer = map(_flat, _said(span))
    except (RecursionError, OverflowError):
        return []
    said, app = [*history, *answer], _first(span.resource, "app")
    session, follows = _fit(_first(attributes, "conversation") or span.trace_id), _first(attributes, "follows") or ""
    user, places = _fit(_first(attributes, "user") or f"user-{session}"), _places(said)
    return [
        IncomingTurn(
            session_id=session,
            user_id=user,
            app_id=None if app is None or app.startswith("unknown_service") else _fit(app),
            role=said[n].role,
            content=said[n].content,
            message_id=named_id(session, follows, str(places[n]), said[n].role, said[n].content.strip()),
            timestamp=span.started_at if n < len(history) else span.ended_at or span.started_at,
            metadata=said[n].noted or None,
        )
        for n in [*_read(history), *range(len(history), len(said))]
    ]


class _Turn(NamedTuple):
    role: Role
    content: str
    noted: dict[str, Scalar]
    answered: bool


def _flat(messages: Iterable[ChatMessage]) -> list[_Turn]:
    return [_Turn(*part, message.role == "assistant") for message in messages for part in parts_of(message)]


def _read(history: Sequence[_Turn]) -> list[int]:
    """The turns of a history that are read."""
    instructed = next((n for n, each in enumerate(history) if each.role is not Role.SYSTEM), len(history))
    new = max((n + 1 for n, each in enumerate(history) if each.answered), default=0)
    begin = 0 if sum(each.role is Role.USER for each in history) <= 1 else instructed
    return [*range(begin, instructed), *range(max(instructed, new - _REPEATED_TURNS), len(history))]


def _places(said: Iterable[_Turn]) -> list[int]:
    before, places = Counter[tuple[Role, str]](), list[int]()
    for each in said:
        same = each.role, each.content.strip()
        places.append(before[same])
        before[same] += 1
    return places


def flat(nested: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes by flat name, from nested objects and lists.

    >>> flat({"llm": {"input_messages": [{"message.role": "user"}]}})
    {'llm.input_messages.0.message.role': 'user'}
    """
    found: dict[str, Any] = {}
    for name, value in nested.items():
        inner = dict(zip(map(str, range(len(value))), value, strict=True)) if isinstance(value, list) else value
        if isinstance(inner, Mapping):
            found |= {f"{name}.{below}": each for below, each in flat(inner).items()}
        else:
            found[name] = value
    return found


def _said(span: TracedSpan) -> tuple[list[ChatMessage], list[ChatMessage]]:
    """History and answer, from the span's attributes, else from its events."""
    history, answer = _of_attributes(span.attributes)
    for event in () if history or answer else span.events:
        given, said = _of_attributes(event.said)
        history += given
        answer += said
        if (role := _TABLE["events"].get(event.name)) and event.said.get("index", 0) == 0:
            inner = _object(event.said.get("gen_ai.event.content"))
            (answer if event.name == "gen_ai.choice" else history).extend(messages_in(inner or event.said, role))
    return history, answer


def _of_attributes(attributes: Mapping[str, Any]) -> tuple[list[ChatMessage], list[ChatMessage]]:
    def told(side: str, role: str) -> list[ChatMessage]:
        whole = (attributes.get(name) for name in _TABLE["messages"][side])
        parts = (numbered(attributes, prefix) for prefix in _TABLE["numbered"][side])
        return list(messages_in(next(filter(None, chain(whole, parts)), []), role))

    instructions = attributes.get("gen_ai.system_instructions")
    system = messages_in({"role": "system", "parts": instructions}, "system") if instructions else ()
    return [*system, *told("input", "user")], told("output", "assistant")


def _with_inner(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with the ones that OpenInference stores as JSON: a framework's metadata of a run, and parameters."""
    told = {name: _object(attributes.get(name)) for name in _TABLE["names"]["inner"]}
    return {f"{name}.{below}": value for name, inner in told.items() for below, value in inner.items()} | dict(
        attributes
    )


def _object(text: Any) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (*UNDECODABLE, TypeError):
        return {}


def _first(attributes: Mapping[str, Any], what: str) -> str | None:
    values = (attributes.get(name) for name in _TABLE["names"][what])
    return next((str(value) for value in values if isinstance(value, str | int) and value != ""), None)


def _fit(name: str) -> str:
    """A name as a valid id; one that is too long, or has invisible characters, is replaced by its hash."""
    return name if len(name) <= _LONGEST_ID and name.isprintable() else named_id(name)
