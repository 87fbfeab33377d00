"""The gateway on a real broker: what it answers is in the log, what it refuses is not; tenants, back-pressure."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import httpx
import pytest
from aiokafka.structs import RecordMetadata

from jobs.shared.role_process import free_port
from models.events import SessionEnded, UnnumberedTurn
from models.events.topics import AUDIT, TURNS
from models.policy import IntakePolicy, Policy
from models.wire.codec import decode_input, decode_output
from streams.gateway.turns_log import Place, TurnsLog
from streams.http.audit import KafkaAudit
from streams.http.problems import Problem
from streams.kafka.client import read_to_end
from streams.kafka.producer import ProducerOnDemand, Record
from streams.kafka.records import appended_at
from streams.roles.gateway import take_turns
from streams.settings import Settings
from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.support.fault_driver import until

ONE = {"session_id": "s-1", "user_id": "u-1", "app_id": "shop", "role": "user", "content": "Hi", "message_id": "m-1"}


@asynccontextmanager
async def gateway(settings: Settings, **http: Any) -> AsyncIterator[httpx.AsyncClient]:
    """The role, ready, and a client of it."""
    made = HttpSettings(gateway_port=free_port(), **http)
    stop, role_settings = asyncio.Event(), settings.model_copy(update={"http": made})
    running = asyncio.create_task(take_turns(role_settings, Policy(), KafkaAudit(settings), stop))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{made.gateway_port}", timeout=20) as client:

        async def ready() -> bool:
            with suppress(httpx.TransportError):
                return (await client.get("/readyz")).is_success
            return False

        await until(ready, "the gateway is ready")
        try:
            yield client
        finally:
            stop.set()
            await running


async def events(settings: Settings) -> dict[Place, Any]:
    """What the fold would read, by its place."""
    found = read_to_end(settings.kafka, TURNS.full_name(settings.topic_prefix))
    return {
        Place(each.partition, each.offset): decode_input(each.value, each.key, appended_at(each), IntakePolicy())
        async for each in found
    }


async def test_what_is_answered_is_in_the_log(settings: Settings) -> None:
    """Each form of a request, many at once: at the place that is told, in order, with an id and a time."""
    chat = {"session_id": "s-2", "user_id": "u-1", "messages": [{"role": "user", "content": "Hi"}] * 3}
    many = {"turns": [{**ONE, "message_id": f"m-{n}"} for n in range(9)]}
    async with gateway(settings) as client:
        answers = await asyncio.gather(*(client.post("/v1/turns", json=each) for each in (ONE, many, chat) * 5))
        ended = await client.post("/v1/sessions/s-1/end", json={"app_id": "shop"})
    log = await events(settings)
    told = [each for answer in answers for each in answer.json()["accepted"]]
    places = [Place(each["partition"], each["offset"]) for each in told]

    assert {answer.status_code for answer in (*answers, ended)} == {202}
    assert len(told) == len(set(places)) == 5 * 13 == len(log) - 1
    for each, place in zip(told, places, strict=True):
        turn = log[place]
        assert isinstance(turn, UnnumberedTurn)
        assert (turn.session_id, turn.app_id, turn.message_id) == (
            each["session_id"],
            each["app_id"],
            each["message_id"],
        )
    assert len({each["message_id"] for each in told if each["session_id"] == "s-2"}) == 15
    for answer in answers:
        offsets = [each["offset"] for each in answer.json()["accepted"]]
        assert offsets == sorted(offsets)
    assert isinstance(log[Place(ended.json()["partition"], ended.json()["offset"])], SessionEnded)


WRONG_TURNS: list[tuple[dict[str, Any], str]] = [
    ({"turns": [ONE, {**ONE, "role": "boss"}]}, "turns[1].role"),
    ({"turns": [ONE, {**ONE, "session_id": "a\u0000b"}]}, "turns.session_id"),
    ({"turns": [ONE, {**ONE, "content": "x" * 300_000}]}, "turns[1].content"),
    ({"turns": [ONE, {**ONE, "timestamp": "2999-01-01T00:00:00Z"}]}, "turns[1].timestamp"),
    ({"turns": [ONE, {**ONE, "timestamp": "2026-01-01T00:00:00"}]}, "turns[1].timestamp"),
    ({"turns": [ONE], "role": "user"}, "role"),
    ({"turns": [ONE], "messages": [{"role": "user", "content": "Hi"}]}, "messages"),
    ({"messages": [{"role": "user", "content": "Hi"}], "user_id": "u"}, "session_id"),
    ({"messages": [{"role": "chef", "content": "Hi"}], "user_id": "u", "session_id": "s"}, "messages[0].role"),
    ({"messages": [{"role": "user"}], "user_id": "u", "session_id": "s"}, "messages"),
    ({"turns": []}, "turns"),
    ({**ONE, "message_id": ""}, "message_id"),
    ({}, "session_id"),
]


async def test_a_wrong_turn_is_named_and_nothing_is_sent(settings: Settings) -> None:
    """422, with the field and never what it held; of the turns beside it none is in the log."""
    async with gateway(settings) as client:
        answers = [await client.post("/v1/turns", json=body) for body, _ in WRONG_TURNS]
    told = [(answer.status_code, *(error["field"] for error in answer.json()["errors"])) for answer in answers]

    assert told == [(422, field) for _, field in WRONG_TURNS]
    assert "boss" not in "".join(answer.text for answer in answers)
    assert await events(settings) == {}


async def test_tokens_write_their_apps_alone(settings: Settings) -> None:
    """Readers may not write, writers only to their app, which need not be named; each deed is audited."""
    tokens = [
        ApiToken(token=f"a-token-of-{role}-{len(apps)}", apps=apps, role=role, name=role)
        for role, apps in ((TokenRole.READER, ["shop"]), (TokenRole.WRITER, ["shop"]), (TokenRole.WRITER, ["a", "b"]))
    ]
    named, unnamed = ONE, {name: value for name, value in ONE.items() if name != "app_id"}
    asked = [(None, named), (0, named), (1, {**named, "app_id": "bank"}), (2, unnamed), (1, unnamed)]
    async with gateway(settings, tokens=tokens) as client:
        headers = [{"Authorization": f"Bearer {each.token.get_secret_value()}"} for each in tokens]
        answers = [
            await client.post("/v1/turns", json=body, headers={} if who is None else headers[who])
            for who, body in asked
        ]
        end = await client.post("/v1/sessions/s-1/end", json={}, headers=headers[2])
    audited = [
        cast("Any", decode_output(AUDIT, each.value or b""))
        async for each in read_to_end(settings.kafka, AUDIT.full_name(settings.topic_prefix))
    ]

    assert [answer.status_code for answer in (*answers, end)] == [401, 403, 403, 403, 202, 403]
    assert [turn.app_id for turn in (await events(settings)).values()] == ["shop"]
    assert ("writer", "/v1/turns", 202, "shop", "s-1") in {
        (each.by, each.route, each.status, each.app_id, each.session_id) for each in audited
    }


class Held(ProducerOnDemand):
    """A producer whose broker does not answer yet."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.batches: list[int] = []
        self._sealing = None

    async def partition_of(self, topic: str, key: bytes) -> int:  # noqa: ARG002 - there is one
        """The only one."""
        return 0

    async def write(self, topic: str, key: bytes, records: Any) -> list[RecordMetadata]:  # noqa: ARG002 - likewise
        """Acknowledge when the broker is back."""
        await self.release.wait()
        self.batches.append(len(records))
        return [RecordMetadata(topic, 0, None, sum(self.batches[:-1]), None, 0, None)]


async def test_back_pressure() -> None:
    """Beyond the bound 429, at once and with a time to wait; what waits goes in one batch, each with its own offset."""
    producer, record = Held(), Record(b"s", b"x" * 100_000)
    log = TurnsLog(producer, "t", max_bytes=450_000)
    waiting = [asyncio.create_task(log.append([record])) for _ in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(Problem, match="log_behind") as refused:
        await log.append([record])
    producer.release.set()
    places = await asyncio.gather(*waiting)

    assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "1"})
    assert places == [[Place(0, offset)] for offset in range(4)]
    assert producer.batches == [4]
    assert await log.append([record]) == [Place(0, 4)]
