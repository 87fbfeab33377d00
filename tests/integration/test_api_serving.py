"""Serving over a real socket, inside somebody else's event loop."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from aiokafka import TopicPartition
from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.responses import Response

from jobs.operate.topics import apply_topics
from jobs.replay.comparison import State
from jobs.shared.broker_config import free_port
from models.errors import ConfigurationError
from models.events import Role, Turn
from models.events.topics import CONVERSATION_TOPICS, TURNS, Topic
from models.session.fold import SessionState
from models.session.topics.conversation_topics import ConversationTopics
from models.session.topics.reading import get_topic_context, list_topics
from streams.http.answering import ServedRoute
from streams.http.health import Api, create_api, serve
from streams.kafka.client import consumer
from streams.roles.index import IndexRole
from streams.settings import Settings, load_settings
from streams.wiring import embedder_of, policy_of, scorer_of, vector_store_of
from tests.fault_driver import assert_equal_to_replay, recorded, said, send, sessions_role, until
from tests.topics_indexed import SUBJECTS

NOW = datetime.now(UTC)


def _api(*routes: ServedRoute) -> Api:
    return create_api(ready=lambda: (True, "ready"), registry=CollectorRegistry(), routes=routes)


async def test_port_0_is_a_free_port_that_answers_at_once_and_closes() -> None:
    """The yielded port serves from the first moment, on loopback; afterwards nobody listens."""
    async with serve(_api()) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        answer = await client.get("/readyz")

    assert (answer.status_code, answer.text) == (200, "ready")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_leaving_before_the_first_request_stops_cleanly() -> None:
    """A role that fails while starting does not hang in its own health server."""
    async with serve(_api()) as port:
        pass

    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_signals_stay_the_roles() -> None:
    """Uvicorn's handlers would swallow the SIGTERM on which a role flushes."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    async with serve(_api()) as port, httpx.AsyncClient() as client:
        await client.get(f"http://127.0.0.1:{port}/livez")
        during = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    assert before == during


async def test_an_open_request_is_finished() -> None:
    """Stopping waits for the answer under way."""
    entered, release = asyncio.Event(), asyncio.Event()

    async def slow(_request: Request) -> Response:
        entered.set()
        await release.wait()
        return Response("done")

    async with httpx.AsyncClient() as client:
        async with serve(_api(ServedRoute("/slow", slow, ["GET"]))) as port:
            asking = asyncio.create_task(client.get(f"http://127.0.0.1:{port}/slow"))
            await entered.wait()
            asyncio.get_running_loop().call_later(0.2, release.set)
        answer = await asking

    assert answer.text == "done"


async def test_queries_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A query is conversation text; an access log would keep it at any level."""

    async def echo(request: Request) -> Response:
        return Response(request.query_params["q"])

    with caplog.at_level(logging.DEBUG, "uvicorn"):
        async with serve(_api(ServedRoute("/echo", echo, ["GET"]))) as port, httpx.AsyncClient() as client:
            answer = await client.get(f"http://127.0.0.1:{port}/echo", params={"q": "something-private"})

    assert answer.text == "something-private"
    assert [r.name for r in caplog.records if r.name.startswith("uvicorn") and "private" in r.getMessage()] == []


async def test_a_taken_port_is_a_configuration_error() -> None:
    """The message names the address and the way out."""
    async with serve(_api()) as port:
        with pytest.raises(ConfigurationError, match=rf"127\.0\.0\.1:{port}.*http\."):
            async with serve(_api(), port=port):
                pass


# --- the index role, from two topics to HTTP


@asynccontextmanager
async def index_role(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """The index role in this process on the local store, and a client of its sessions."""
    embedder, stop = embedder_of(settings), asyncio.Event()
    scorer, store = scorer_of(settings, embedder), vector_store_of(settings, embedder)
    role = IndexRole(settings, policy_of(settings), embedder, scorer, store)
    task = asyncio.create_task(role.run(stop))
    try:
        base = f"http://127.0.0.1:{settings.http.index_port}/v1/sessions"
        async with httpx.AsyncClient(base_url=base) as client:
            yield client
    finally:
        stop.set()
        await task


def conversation(session_id: str) -> list[Turn]:
    """Questions and answers, a stretch on each subject and back to the first."""
    subjects = [subject for subject in [*SUBJECTS, "boats"] for _ in range(16)]
    return [
        said(
            n,
            session_id=session_id,
            role=Role.ASSISTANT if n % 2 else Role.USER,
            content=f"That depends ({n})." if n % 2 else f"{SUBJECTS[subject]} ({n})",
            at=NOW - timedelta(hours=2) + timedelta(seconds=n),
        )
        for n, subject in enumerate(subjects)
    ]


def topics_of(settings: Settings, state: State, session_id: str) -> ConversationTopics:
    """A session's topics as the sessions role has them."""
    (parts,) = (entities[session_id] for entities in state.values() if session_id in entities)
    return SessionState.load(parts).topics(policy_of(settings))


def lasting(stats: Any) -> dict[str, Any]:
    """Statistics without those that move with the clock."""
    shown = ("topic_id", "topic_title", "active_messages", "compressed_messages", "total_messages", "access_count")
    return {field: stats[field] for field in shown}


async def progress(settings: Settings, topic: Topic) -> tuple[dict[int, int], dict[int, int]]:
    """What the index role has committed of a topic, and where its log ends."""
    async with consumer(settings.kafka, group_id=f"{settings.topic_prefix}.index") as client:
        places = [TopicPartition(topic.full_name(settings.topic_prefix), n) for n in range(2)]
        ends = {place.partition: end for place, end in (await client.end_offsets(places)).items()}
        return {place.partition: await client.committed(place) or 0 for place in places}, ends


@pytest.mark.kafka
async def test_the_index_role_serves_topics_of_two_sources(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    """Turns and topic events come through one agent, both are committed, and readers are told what the state says."""
    settings = load_settings(
        kafka={"bootstrap": kafka, "partitions": 2},
        topic_prefix=topic_prefix,
        data_dir=tmp_path,
        http={"index_port": free_port(), "sessions_port": 0},
    )
    await apply_topics(settings)
    names = ["one", "two/topics", "three"]
    await send(settings, [recorded(turn) for name in names for turn in conversation(name)])
    async with sessions_role(settings), index_role(settings) as client:
        state = (await assert_equal_to_replay(settings)).state
        topics = {name: topics_of(settings, state, name) for name in names}
        expected = {name: [lasting(each) for each in list_topics(topics[name], NOW)] for name in names}

        async def served() -> bool:
            answers = {name: await client.get(f"/{quote(name, safe='')}/topics") for name in names}
            return expected == {
                name: [lasting(each) for each in answer.json()]
                for name, answer in answers.items()
                if answer.status_code == HTTPStatus.OK
            }

        await until(served, "the index has the topics of the state")
        contexts = {name: (await client.get(f"/{quote(name, safe='')}/context")).json() for name in names}

    assert {name: get_topic_context(topics[name]) for name in names} == contexts
    assert min(map(len, expected.values())) > 1
    for topic in (TURNS, CONVERSATION_TOPICS):
        committed, ends = await progress(settings, topic)
        assert committed == ends
        assert sum(ends.values()) > 0
