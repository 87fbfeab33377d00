"""A traced LangGraph application shows up through OTLP alone, also when its traces come twice and in pieces."""

import asyncio
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from models.policy import Policy
from streams.gateway.gateway import Gateway
from streams.gateway.otlp import OtlpRoutes
from streams.http.answering import served_routes
from streams.settings.http import HttpSettings
from tests.support.http_api import api_of, client_of
from tests.support.stack import Stack
from tests.support.traced_apps import conversations, sent_by

pytestmark = pytest.mark.timeout(240)


def pieces(body: bytes) -> list[bytes]:
    """A request of each span, the last first."""
    told = ExportTraceServiceRequest.FromString(body)
    made = []
    for resource in told.resource_spans:
        for scope in resource.scope_spans:
            for span in reversed(scope.spans):
                piece = ExportTraceServiceRequest()
                piece.resource_spans.add(resource=resource.resource).scope_spans.add().spans.append(span)
                made.append(piece.SerializeToString())
    return made


async def turns(http: httpx.AsyncClient, session_id: str, wanted: int) -> list[dict[str, Any]]:
    """Turns of a session, once there are so many."""
    while True:
        answer = await http.get(f"/v1/sessions/{session_id}/turns?app_id=shop&last=100")
        if answer.status_code == 200 and len(found := answer.json()) >= wanted:
            return sorted(found, key=lambda turn: int(turn["turn"]))
        await asyncio.sleep(0.2)  # poll the index


async def test_a_traced_langgraph_application(stack: Stack) -> None:
    """Whole, then again span by span and backwards: each message has one number."""
    (body,) = [body for _, body in sent_by("langgraph-openinference")]
    gateway = Gateway(stack.settings, Policy())
    app = api_of(served_routes(OtlpRoutes(gateway, max_bytes=2**20)), http=HttpSettings(max_body_bytes=2**20))
    first, second = conversations("langgraph-openinference")
    async with client_of(app, {"content-type": "application/x-protobuf"}) as sender, stack.client() as http:
        for sent in (body, *pieces(body)):
            assert (await sender.post("/v1/traces", content=sent)).status_code == 200
        await sender.post("/v1/traces", content=pieces(body)[0])
        shown = {session: await turns(http, session, len(said)) for session, said in (("t-1", first), ("t-2", second))}
    await gateway.close()

    for session, said in (("t-1", first), ("t-2", second)):
        assert [(turn["turn"], turn["role"], turn["content"]) for turn in shown[session]] == [
            (number, *each) for number, each in enumerate(said)
        ]
