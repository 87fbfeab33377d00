"""OTLP at the gateway: turns in Kafka once they are confirmed, of the token's apps only; errors as OTLP has them."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from pydantic import SecretStr

from jobs.shared.role_process import free_port
from models.events.topics import TURNS
from models.policy import Policy
from streams.gateway.gateway import Gateway
from streams.gateway.otlp import OtlpRoutes
from streams.http.answering import served_routes
from streams.http.health import serve
from streams.settings import Settings
from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.support.fault_driver import records_on
from tests.support.http_api import api_of, client_of
from tests.support.traced_apps import APPS, conversations, run, scripted_model, sent_by

PROTOBUF, JSON, PROBLEM = "application/x-protobuf", "application/json", "application/problem+json"
MAX_BYTES = 2**20
TOKENS = {"shop": ["shop"], "bank": ["bank"], "both": ["shop", "bank"], "reader": ["shop"]}
(TRACES,) = [body for _, body in sent_by("langgraph-openinference")]


def token(name: str) -> str:
    """The token of somebody."""
    return f"a-token-of-{name}-0123456789"


def headers(name: str = "shop", kind: str = PROTOBUF, **more: str) -> dict[str, str]:
    """What OTEL_EXPORTER_OTLP_HEADERS adds, and what a sender says of its body."""
    return {"authorization": f"Bearer {token(name)}", "content-type": kind, **more}


@pytest.fixture
async def gateway(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """The routes as the role serves them beyond loopback."""
    tokens = [
        ApiToken(
            token=SecretStr(token(name)),
            apps=apps,
            role=TokenRole.READER if name == "reader" else TokenRole.WRITER,
        )
        for name, apps in TOKENS.items()
    ]
    gateway = Gateway(settings, Policy())
    routes = served_routes(OtlpRoutes(gateway, max_bytes=MAX_BYTES))
    app = api_of(routes, http=HttpSettings(tokens=tokens, max_body_bytes=MAX_BYTES))
    async with client_of(app) as client:
        yield client
    await gateway.close()


async def written(settings: Settings) -> list[dict[str, Any]]:
    """Turns on the topic."""
    return [msgspec.json.decode(record.value) for record in await records_on(settings, TURNS)]


def one_call(content: str, app: str = "shop") -> bytes:
    """A call of a model in JSON, its history one message."""
    attributes = [{"key": "gen_ai.prompt", "value": {"stringValue": content}}]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": app}}]}
    spans = [{"traceId": "0af7", "attributes": attributes}]
    return msgspec.json.encode({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]})


async def test_a_trace_sent_twice_is_the_same_turns(settings: Settings, gateway: httpx.AsyncClient) -> None:
    """Plain and compressed, of one app and of another: the ids tell that nothing is new, in each app by itself.

    An SDK that knows one address sends its metrics too: taken and dropped, an error would stand in its log each minute.
    """
    packed = gzip.compress(TRACES)
    for name in ("shop", "bank"):
        for body, more in ((TRACES, {}), (packed, {"content-encoding": "gzip"})):
            answer = await gateway.post("/v1/traces", content=body, headers=headers(name, **more))
            assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, b"", PROTOBUF)
    metrics = await gateway.post("/v1/metrics", content=b"anything", headers=headers())
    turns = await written(settings)

    assert (metrics.status_code, metrics.content) == (200, b"")
    assert len(turns) == 4 * 14
    for app in ("shop", "bank"):
        assert len({(turn["session_id"], turn["message_id"]) for turn in turns if turn["app_id"] == app}) == 14


async def test_what_a_token_may_not_write_is_refused_in_part(settings: Settings, gateway: httpx.AsyncClient) -> None:
    """Of a token with two apps a third one's, and a text that is too long; the reason holds no text of the call."""
    long = one_call("x" * 300_000)
    for body, reason in ((one_call("Secret.", "club"), "forbidden_app"), (long, "content_too_large")):
        answer = await gateway.post("/v1/traces", content=body, headers=headers("both", JSON))
        said = {"rejectedSpans": "1", "errorMessage": f"model calls refused: {reason} (1)"}
        assert (answer.status_code, answer.json()) == (200, {"partialSuccess": said})
    foreign = await gateway.post("/v1/traces", content=TRACES.replace(b"shop", b"club"), headers=headers("both"))
    await gateway.post("/v1/logs", content=one_call("Good.", "bank"), headers=headers("both", JSON))

    partial = MessageToDict(ExportTraceServiceResponse.FromString(foreign.content))["partialSuccess"]
    assert partial == {"rejectedSpans": "6", "errorMessage": "model calls refused: forbidden_app (6)"}
    assert [(turn["app_id"], turn["content"]) for turn in await written(settings)] == [("bank", "Good.")]


@pytest.mark.parametrize(
    ("body", "more", "expected"),
    [
        (b"\xff", {}, (400, "not OTLP", PROTOBUF)),
        (b"[]", {"kind": JSON}, (400, "not OTLP", JSON)),
        (b"{", {"kind": JSON, "content-encoding": "gzip"}, (400, "not gzip", JSON)),
        (gzip.compress(bytes(MAX_BYTES + 1)), {"content-encoding": "gzip"}, (413, "unpacked", PROTOBUF)),
        (b"", {"content-encoding": "br"}, (415, "gzip", PROTOBUF)),
        (b"", {"kind": "text/plain"}, (415, PROTOBUF, PROBLEM)),
        (b"", {"name": "reader"}, (403, "writer", PROBLEM)),
        (b"", {"name": "nobody"}, (401, "unknown", PROBLEM)),
    ],
)
async def test_errors(
    gateway: httpx.AsyncClient, body: bytes, more: dict[str, str], expected: tuple[int, str, str]
) -> None:
    """A sender reads why in its own form once it is let in, else as everybody."""
    answer = await gateway.post("/v1/traces", content=body, headers=headers(**more))

    status, said, form = expected

    assert (answer.status_code, answer.headers["content-type"]) == (status, form)
    assert said in answer.text


async def test_while_kafka_is_away(settings: Settings) -> None:
    """A sender is told to come again, and that nothing is lost by it."""
    away = settings.kafka.model_copy(update={"bootstrap": f"127.0.0.1:{free_port()}"})
    gateway = Gateway(settings.model_copy(update={"kafka": away}), Policy())
    app = api_of(served_routes(OtlpRoutes(gateway, max_bytes=MAX_BYTES)), http=HttpSettings())
    async with client_of(app) as client:
        answer = await client.post("/v1/traces", content=one_call("Hi"), headers={"content-type": JSON})
    await gateway.close()

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert "safe to repeat" in answer.json()["message"]


@pytest.mark.slow
@pytest.mark.parametrize("name", APPS)
async def test_the_real_instrumentations(settings: Settings, name: str) -> None:
    """Each in an environment of its own; it knows the gateway's address and no more."""
    gateway = Gateway(settings, Policy())
    app = api_of(served_routes(OtlpRoutes(gateway, max_bytes=MAX_BYTES)), http=HttpSettings(max_body_bytes=MAX_BYTES))
    with scripted_model() as model_url:
        async with serve(app, "127.0.0.1", 0) as port:
            await asyncio.to_thread(run, APPS[name], f"http://127.0.0.1:{port}", model_url)
    await gateway.close()
    told: dict[str, dict[str, tuple[str, str]]] = {}
    for turn in await written(settings):
        told.setdefault(turn["session_id"], {})[turn["message_id"]] = (turn["role"], turn["content"].strip())

    assert [[*said.values()] for said in told.values()] == conversations(name)
