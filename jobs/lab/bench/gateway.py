"""Turns over HTTP: what the gateway takes a core, how long an answer lasts, and what a plain producer takes beside it.

Requests come at a steady rate over connections that stay open, from a process of their own; an answer means that all
replicas have the turns. The plain producer writes the same records with aiokafka, acknowledged likewise.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import cycle, islice
from time import process_time
from typing import Any

import msgspec
from aiokafka import AIOKafkaProducer

from jobs.lab.bench.http_load import WARM_UP_S, time_http
from jobs.lab.bench.measuring import BenchEnvironment, Figures, say
from jobs.lab.bench.roles import running
from models.events.topics import TURNS
from models.messages.turns import IncomingTurn
from streams.kafka.client import client_options
from streams.kafka.records import input_record
from streams.settings import Settings

TOGETHER = (1, 10)
"""Turns of a request."""
_BODIES, _SESSIONS = 5_000, 500
_ON = {f"TURNTIDE_HTTP__{name}": "1000000" for name in ("REQUESTS_PER_SECOND", "BURST", "MAX_CONCURRENT_REQUESTS")}
QUICK = {"seconds": 5.0}


async def measure(environment: BenchEnvironment, *, turns_per_s: int = 1_000, seconds: float = 20.0) -> Figures:
    """Send turns one and ten a request, and the same records by a plain producer."""
    settings, rows = await environment.fresh(), list[Figures]()
    async with running(settings, "gateway", environment=_ON) as (server,):
        for together in TOGETHER:
            say(f"{together} turns a request, {turns_per_s} turns/s for {seconds:g} s")
            bodies = [_body(turns) for turns in _requests(together)]
            found = time_http(server, "/v1/turns", bodies, rate=turns_per_s / together, seconds=seconds)
            # The processor is read over the whole run, the warm-up too.
            sent_per_s = found["rate"] * together
            rows.append({**found, "together": together, "turns_per_core": sent_per_s / found["server_cpus"]})
    say("a plain producer")
    plain = await _plain(settings, round(turns_per_s * (seconds + WARM_UP_S)))
    return {
        "rows": [{**row, "ratio": row["turns_per_core"] / plain} for row in rows],
        "plain_per_core": plain,
        "turns_per_s": turns_per_s,
        "seconds": seconds,
    }


def _requests(together: int) -> Sequence[Sequence[IncomingTurn]]:
    said: Any = {"content": "My parcel has not arrived. Where is it, and when will it come? I have waited for a week."}
    places = [{"session_id": f"s-{n}", "user_id": f"u-{n}", "role": "user"} | said for n in range(_SESSIONS)]
    return [
        [IncomingTurn(**places[n % _SESSIONS], message_id=f"m-{together}-{n}-{m}") for m in range(together)]
        for n in range(_BODIES)
    ]


def _body(turns: Sequence[IncomingTurn]) -> str:
    given = [{name: value for name, value in each.items() if value is not None} for each in msgspec.to_builtins(turns)]
    return msgspec.json.encode({"turns": given} if len(given) > 1 else given[0]).decode()


async def _plain(settings: Settings, turns: int) -> float:
    """Turns for each second of a processor, by aiokafka alone; as many on their way as the gateway has requests."""
    producer = AIOKafkaProducer(**client_options(settings.kafka), acks="all", enable_idempotence=True)
    topic, now = TURNS.full_name(settings.topic_prefix), datetime.now(UTC)
    records = [input_record(turn.event(now)) for (turn,) in _requests(1)]
    await producer.start()
    began_s = process_time()
    waiting = islice(cycle(records), turns)

    async def send() -> None:
        for record in waiting:
            await producer.send_and_wait(topic, record.value, record.key, headers=list(record.headers))

    await asyncio.gather(*(send() for _ in range(32)))
    used_s = process_time() - began_s
    await producer.stop()
    return turns / used_s
