"""Traced model calls become turns: what the real instrumentations send, and what their older generations sent."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from models.events.base import Role
from models.messages.otlp import spans_in
from models.messages.spans import SpanEvent, TracedSpan, turns_in
from models.messages.turns import IncomingTurn
from streams.gateway import otlp_protobuf
from tests.support.traced_apps import APPS, Said, conversations, sent_by

REQUESTS: dict[str, Any] = {"traces": ExportTraceServiceRequest, "logs": ExportLogsServiceRequest}


def said(turns: list[IncomingTurn], session_id: str | None = None) -> Said:
    """What was said, in one session or in all; streamed answers end with a blank."""
    return [(each.role.value, each.content.strip()) for each in turns if session_id in {None, each.session_id}]


def span(events: list[SpanEvent] | None = None, **attributes: Any) -> TracedSpan:
    """A span of one conversation; `__` in a name stands for a dot."""
    named = {name.replace("__", "."): value for name, value in attributes.items()}
    return TracedSpan(
        attributes=named, events=events or [], trace_id="t" * 32, started_at=datetime(2026, 1, 5, tzinfo=UTC)
    )


@pytest.mark.parametrize("name", APPS)
def test_each_instrumentation_tells_the_same_conversation(name: str) -> None:
    """Each message once, though each call repeats the history, and says of whom and of which app it is. So in JSON."""
    sent = [*sent_by(name)]
    turns = turns_in(span for signal, body in sent for span in otlp_protobuf.spans_in(body, signal))
    lines = [msgspec.json.encode(MessageToDict(REQUESTS[signal].FromString(body))) for signal, body in sent]
    told = {turn.session_id: said(turns, turn.session_id) for turn in turns}
    users = {turn.user_id for turn in turns}

    assert said(turns_in(span for line in lines for span in spans_in(line))) == said(turns)
    assert [*told.values()] == conversations(name)
    assert users == ({"ana"} if told.keys() & {"chat-1", "t-1"} else {f"user-{session}" for session in told})
    assert {turn.app_id for turn in turns} == {"shop"}
    assert [turn.timestamp for turn in turns] == sorted(turn.timestamp for turn in turns if turn.timestamp)


HI = [("user", "Hi"), ("assistant", "Hello.")]
MESSAGES = '[{"role": "user", "content": "Hi"}]'


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            span(
                [
                    SpanEvent("gen_ai.content.prompt", {"gen_ai.prompt": MESSAGES}),
                    SpanEvent("gen_ai.content.completion", {"gen_ai.completion": '[{"content": "Hello."}]'}),
                ]
            ),
            HI,
        ),
        (
            span(
                [
                    SpanEvent("gen_ai.user.message", {"content": "Hi"}),
                    SpanEvent("gen_ai.choice", {"index": 0, "message": '{"content": "Hello."}'}),
                    SpanEvent("gen_ai.choice", {"index": 1, "message": '{"content": "Another."}'}),
                ]
            ),
            HI,
        ),
        (span([SpanEvent("gen_ai.user.message", {"gen_ai.event.content": '{"content": "Hi"}'})]), HI[:1]),
        (
            span(
                gen_ai__system_instructions='[{"type": "text", "content": "Be kind."}]',
                gen_ai__input__messages=[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}],
                gen_ai__output__messages=[
                    {
                        "role": "assistant",
                        "parts": [{"type": "reasoning", "content": "A greeting."}, {"content": "Hello."}],
                    }
                ],
            ),
            [("system", "Be kind."), *HI],
        ),
        (
            span(
                gen_ai__input__messages=[
                    {"role": "user", "parts": [{"type": "uri", "modality": "image", "uri": "x"}]},
                    {"role": "assistant", "parts": [{"type": "tool_call", "name": "look", "arguments": {"at": 1}}]},
                    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": {"seen": "cat"}}]},
                ]
            ),
            [
                ("user", "[image]"),
                ("tool", '{"name":"look","arguments":{"at":1}}'),
                ("tool", '{"seen":"cat"}'),
            ],
        ),
        (span(gen_ai__prompt='{"no": "message"}', gen_ai__completion="Hello."), [("user", '{"no": "message"}'), HI[1]]),
        (span(gen_ai__operation__name="invoke_agent", gen_ai__input__messages=MESSAGES), []),
        (span(openinference__span__kind="CHAIN", gen_ai__input__messages=MESSAGES), []),
        (span(http__route="/chat"), []),
        (span(gen_ai__prompt__0__content="Hi", gen_ai__prompt__x="?"), []),
    ],
)
def test_generations_and_spans_that_tell_nothing(told: TracedSpan, expected: Said) -> None:
    """Of several choices the first; thoughts are not said; agents and chains repeat what model calls tell."""
    assert said(turns_in([told])) == expected


def test_what_a_conversation_is_called() -> None:
    """By attributes, the metadata of a framework, or the trace; names that no id may be are told by their hash."""
    talk: dict[str, Any] = {"gen_ai__prompt": "Hi"}
    metadata = span(**talk, metadata='{"thread_id": "t-1", "user_id": 7}')
    named = span(**talk, session__id="s-1", enduser__id="ana")
    odd = span(**talk, gen_ai__conversation__id="a\nb", user__id="u" * 300)
    found = [(turn.session_id, turn.user_id) for turn in turns_in([metadata, named, span(**talk), odd])]

    assert found[:3] == [("t-1", "7"), ("s-1", "ana"), ("t" * 32, f"user-{'t' * 32}")]
    assert all(name.isprintable() and len(name) == 36 for name in found[3])


def test_a_provider_that_keeps_the_history() -> None:
    """A text that is said again is another turn: the call says which answer it goes on from."""
    calls = [
        span(
            gen_ai__prompt="yes",
            gen_ai__completion=answer,
            llm__invocation_parameters=f'{{"previous_response_id": "{answer}"}}',
        )
        for answer in "ab"
    ]

    assert said(turns_in(calls)) == [("user", "yes"), ("assistant", "a"), ("user", "yes"), ("assistant", "b")]


def test_a_line_of_the_collectors_file_exporter() -> None:
    """Numbers as texts, lists and objects as values; what traces do not tell of is passed over."""
    value = {"arrayValue": {"values": [{"kvlistValue": {"values": [
        {"key": "role", "value": {"stringValue": "user"}}, {"key": "content", "value": {"stringValue": "Hi"}},
    ]}}]}}  # fmt: skip
    told = {"traceId": "AB", "startTimeUnixNano": "1767603600000000000", "kind": 3, "status": {}, "attributes": [
        {"key": "gen_ai.input.messages", "value": value}, {"key": "n", "value": {"intValue": "7"}},
    ]}  # fmt: skip
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    line = msgspec.json.encode({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [told]}]}]})
    (span,) = spans_in(line)
    (turn,) = turns_in([span])

    assert span.attributes["n"] == 7
    assert (turn.session_id, turn.app_id, turn.role, turn.content) == ("ab", "shop", Role.USER, "Hi")
    assert turn.timestamp == datetime(2026, 1, 5, 9, tzinfo=UTC)
