"""Exports of traced calls of language models. Each call repeats its history: all calls of an input are read together.

They become spans as of `models.messages.spans`, which takes each message once. Sessions are those that an export
names, else its traces; turns are numbered in the order in which they were said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import structs

from jobs.produce.formats.filling import FileMessage, Filling, Transcript
from models.errors import InvalidRecord
from models.messages.dialects import parsed
from models.messages.otlp import spans_in
from models.messages.spans import TracedSpan, flat, turns_in
from models.messages.turns import IncomingTurn

Document = dict[str, Any]
_SESSION, _FOLLOWS = "gen_ai.conversation.id", "llm.invocation_parameters.previous_response_id"


def transcripts_of(spans: Iterable[TracedSpan], filling: Filling) -> Iterator[Transcript]:
    """What was said in the sessions of spans, each message once, in the order of their beginnings."""
    sessions: dict[tuple[str | None, str], list[IncomingTurn]] = {}
    for turn in turns_in(spans):
        sessions.setdefault((turn.app_id, turn.session_id), []).append(turn)
    for (app, session), turns in sessions.items():
        said = [
            FileMessage(
                role=turn.role.value,
                content=turn.content,
                timestamp=turn.timestamp,
                metadata=turn.metadata,
                message_id=turn.message_id,
            )
            for turn in turns
        ]
        named = turns[0].user_id
        yield Transcript(session, said, filling.user_id or named if named == f"user-{session}" else named, app)


def read_otlp(document: bytes, _position: int, _filling: Filling) -> list[TracedSpan]:
    """Calls that a line's spans and log records tell of."""
    return spans_in(document)


def read_openinference(document: bytes, _position: int, _filling: Filling) -> list[TracedSpan]:
    """The call of a span, if it is one."""
    span = flat(msgspec.json.decode(document, type=Document))
    attributes = {name.removeprefix("attributes."): value for name, value in span.items()}
    attributes.setdefault("openinference.span.kind", span.get("span_kind") or "LLM")
    trace = span.get("context.trace_id") or span.get("trace_id") or ""
    began, ended = _time(span.get("start_time")), _time(span.get("end_time"))
    return [TracedSpan(attributes=attributes, trace_id=str(trace), started_at=began, ended_at=ended)]


def read_langfuse(document: bytes, _position: int, _filling: Filling) -> list[TracedSpan]:
    """Generations of an observation, a trace or a session; a trace without any is a call itself."""
    return list(_langfuse(msgspec.json.decode(document, type=Document), {}))


def _langfuse(told: Document, around: Mapping[str, Any]) -> Iterator[TracedSpan]:
    inner = told.get("traces") or told.get("observations")
    if isinstance(inner, list) and all(isinstance(each, dict) for each in inner):
        known = {"sessionId": _first(told, "sessionId", "session_id") or around.get("sessionId")}
        known |= {"userId": _first(told, "userId", "user_id"), "traceId": told.get("id")}
        found = [call for each in inner for call in _langfuse(each, {**around, **known})]
        if found or "traces" in told:
            yield from found
            return
    if str(told.get("type") or "GENERATION").upper() != "GENERATION":
        return
    told = {**told, **{name: told.get(name) or value for name, value in around.items()}}
    yield _call(
        _first(told, "sessionId", "session_id") or _first(told, "traceId", "trace_id") or told.get("id"),
        _first(told, "userId", "user_id"),
        told.get("input"),
        told.get("output"),
        (_first(told, "startTime", "start_time", "timestamp"), _first(told, "endTime", "end_time")),
    )


def read_langsmith(document: bytes, _position: int, _filling: Filling) -> list[TracedSpan]:
    """The call of a run of a model; other runs repeat what these say."""
    run = msgspec.json.decode(document, type=Document)
    if run.get("run_type") != "llm":
        return []
    extra = run.get("extra")
    noted = (extra.get("metadata") if isinstance(extra, dict) else None) or {}
    session = _first(noted, "session_id", "thread_id", "conversation_id") or _first(run, "trace_id", "id")
    inputs, outputs = _plain(run.get("inputs")), _plain(run.get("outputs"))
    return [_call(session, noted.get("user_id"), inputs, outputs, (run.get("start_time"), run.get("end_time")))]


def read_batch(document: bytes, _position: int, _filling: Filling) -> list[TracedSpan]:
    """What a request asks, or a response answers."""
    line = msgspec.json.decode(document, type=Document)
    response = line.get("response")
    body = (response if isinstance(response, dict) else line).get("body")
    if not isinstance(body, dict):
        raise InvalidRecord("no_body", "it has no body: the request failed")
    asked = body.get("messages") or _items(body.get("input"))
    answered = body.get("choices") or _items(body.get("output"))
    time = body.get("created") or body.get("created_at")
    return [_call(line["custom_id"], body.get("user"), _instructed(body, asked), answered, (time, time))]


def read_responses(document: bytes, _position: int, _filling: Filling) -> list[TracedSpan]:
    """One response, and what it was asked."""
    body = msgspec.json.decode(document, type=Document)
    kept = body.get("conversation")
    session = (kept.get("id") if isinstance(kept, dict) else kept) or body.get("id")
    asked, time = _instructed(body, _items(body.get("input"))), body.get("created_at")
    call = _call(session, body.get("user"), asked, _items(body.get("output")), (time, time))
    follows = {_FOLLOWS: str(body.get("previous_response_id") or "")}
    return [structs.replace(call, attributes={**call.attributes, **follows})]


def transcripts_of_chains(spans: Iterable[TracedSpan], filling: Filling) -> Iterator[Transcript]:
    """As `transcripts_of`; responses that go on from each other are of the conversation of the first."""
    return transcripts_of(_chained(list(spans)), filling)


def _chained(whole: list[TracedSpan]) -> Iterator[TracedSpan]:
    before = {span.attributes[_SESSION]: span.attributes[_FOLLOWS] for span in whole}
    for span in whole:
        first, seen = span.attributes[_SESSION], set[str]()
        while (earlier := before.get(first)) in before and earlier not in seen:
            seen.add(first)
            first = earlier
        yield structs.replace(span, attributes={**span.attributes, _SESSION: first})


# --- parts


def _call(session: Any, user: Any, asked: Any, answered: Any, times: tuple[Any, Any]) -> TracedSpan:
    if not session:
        raise InvalidRecord("no_session", "it has neither a session nor a trace")
    began, ended = map(_time, times)
    said = {"gen_ai.input.messages": _messages(asked), "gen_ai.output.messages": _messages(answered)}
    named = {_SESSION: str(session), "user.id": user and str(user)}
    return TracedSpan(attributes={**named, **said}, started_at=began, ended_at=ended)


def _messages(found: Any) -> Any:
    """Messages of whatever an export has: JSON in a text, choices, generations, lists within lists, a plain text."""
    told = parsed(found)
    if isinstance(told, dict):
        told = next((told[name] for name in ("choices", "generations", "messages", "message") if told.get(name)), told)
    if not isinstance(told, list) or not any(isinstance(each, list) or _is_wrapped(each) for each in told):
        return told
    inner = map(_messages, told)
    return [message for each in inner for message in (each if isinstance(each, list) else [each])]


def _is_wrapped(each: Any) -> bool:
    return isinstance(each, dict) and isinstance(each.get("message"), dict)


def _plain(told: Any) -> Any:
    """LangChain's serialised messages as plain ones: the last part of `id` says who speaks."""
    if isinstance(told, list):
        return [_plain(each) for each in told]
    if not isinstance(told, dict):
        return told
    if isinstance(kwargs := told.get("kwargs"), dict) and told.get("id"):
        return {"role": str(told["id"][-1]).removesuffix("Chunk").removesuffix("Message").lower(), **_plain(kwargs)}
    return {name: _plain(each) for name, each in told.items()}


def _items(found: Any) -> Any:
    """Items of the Responses API as messages: calls, and what tools answered."""
    if not isinstance(found, list):
        return found
    kinds = {"function_call": "assistant", "function_call_output": "tool"}
    items = [each for each in found if isinstance(each, dict) and each.get("type", "message") in {"message", *kinds}]
    return [{"role": kinds[each["type"]], "parts": [each]} if each.get("type") in kinds else each for each in items]


def _instructed(body: Document, asked: Any) -> Any:
    """With the instructions before it."""
    if not isinstance(told := body.get("instructions"), str):
        return asked
    said = [{"role": "user", "content": asked}] if isinstance(asked, str) else list(asked or ())
    return [{"role": "system", "content": told}, *said]


def _first(told: Mapping[str, Any], *names: str) -> Any:
    return next((told[name] for name in names if told.get(name)), None)


def _time(told: Any) -> datetime | None:
    """A time as exports write it: ISO 8601 with a zone or in UTC, or seconds since 1970."""
    if told is None or told == "":
        return None
    try:
        if isinstance(told, int | float):
            return datetime.fromtimestamp(told, UTC)
        time = datetime.fromisoformat(str(told).strip())
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidRecord("unreadable_time", "a time is not in the form 2026-01-05T09:00:00Z") from error
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
