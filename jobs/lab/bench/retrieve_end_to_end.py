"""From a turn that is sent to a prompt that knows it: real roles on a real broker, under load.

A turn is produced to `turns.v1`, and `POST /v1/context` asks with `after` for it: the answer comes once the sessions,
memory and index roles have done their work on the turn. Meanwhile other sessions' turns come at a steady rate.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from time import perf_counter

import httpx
from aiokafka import AIOKafkaProducer
from msgspec.structs import replace

from jobs.lab.bench.measuring import BenchFailed, Figures, Say, cpu_s, spread_ms
from jobs.lab.bench.sessions_role import running
from jobs.lab.bench.traffic import TurnTraffic, paced, producing, send
from jobs.operate.topics import apply_topics
from jobs.shared.role_process import RoleProcess
from models.events import Role, Turn
from streams.settings import Settings

TURNS_PER_S = 200
"""Of other sessions, meanwhile."""
_ROLES = ("sessions", "memory", "enrich", "index")
_APART_S = 0.25
"""Between an answer and the next question."""
_WARM_UP_S = 10.0
_WAIT_MS = 10_000
_SPARE_S = 5.0
_TICK_S = 0.002
_SAID = (
    "My name is Maren and I keep the lighthouse.",
    "The green coat hangs on the second hook.",
    "Please remember that the mail boat comes on Thursday.",
    "I prefer tea, and I never eat fish.",
)


async def question_to_context(settings: Settings, seconds: float, *, say: Say) -> Figures:
    """Start the roles and ask, one question after the other.

    Args:
        settings: Cluster, prefix and data directory; the index role opens the store that is there.
        seconds: For how long, the warm-up left out.
        say: Told what is going on.

    Raises:
        BenchFailed: A question was not answered.
    """
    await apply_topics(settings)
    say(f"sessions, memory, enrich and index roles, {TURNS_PER_S} turns/s")
    async with running(settings, *_ROLES) as roles, producing(settings) as producer:
        sent: list[float] = []
        background = asyncio.create_task(_background(settings, producer, sent))
        try:
            return await _asked(settings, producer, roles, seconds, sent)
        finally:
            background.cancel()
            await asyncio.wait({background})


async def _background(settings: Settings, producer: AIOKafkaProducer, sent: list[float]) -> None:
    """Turns of other sessions until it is cancelled, each when it is due; `sent` gets the time of each."""
    began_s, began = perf_counter(), datetime.now(UTC)
    async for due_s, turn in paced(TurnTraffic().backlog(10**9, ends_at=began), TURNS_PER_S, tick_s=_TICK_S):
        await send(producer, settings, replace(turn, timestamp=began + timedelta(seconds=due_s - began_s)))
        sent.append(perf_counter())


async def _asked(
    settings: Settings, producer: AIOKafkaProducer, roles: Sequence[RoleProcess], seconds: float, sent: list[float]
) -> Figures:
    times_ms, used_s, without_turn = list[float](), dict[str, float](), 0
    index = roles[_ROLES.index("index")]
    counts_from_s = perf_counter() + _WARM_UP_S
    async with httpx.AsyncClient(base_url=index.url, timeout=_WAIT_MS / 1_000 + _SPARE_S) as client:
        for n in count():
            if (began_s := perf_counter()) >= counts_from_s + seconds:
                break
            turn = _question(n)
            await send(producer, settings, turn)
            prompt = await _context(client, turn, index)
            if began_s >= counts_from_s:
                used_s = used_s or {role.role: cpu_s(role.pid) for role in roles}
                times_ms.append((perf_counter() - began_s) * 1_000)
                without_turn += turn.content not in prompt
            await asyncio.sleep(_APART_S)
    if not times_ms:
        raise BenchFailed("no question was asked after the warm-up: give more --seconds")
    return {
        "asked": len(times_ms),
        "turns_per_s": sum(at_s >= counts_from_s for at_s in sent) / seconds,
        **spread_ms(times_ms)._asdict(),
        "max_ms": max(times_ms),
        "role_cpus": {role.role: (cpu_s(role.pid) - used_s[role.role]) / seconds for role in roles},
        "without_turn": without_turn,
        "load_average": os.getloadavg()[0],
    }


def _question(n: int) -> Turn:
    """Turn `n` of a session; each says which it is."""
    return Turn(
        session_id="asking",
        user_id="asks",
        app_id="bench",
        turn=n,
        role=Role.USER,
        content=f"{_SAID[n % len(_SAID)]} That is what I said in message {n}.",
        timestamp=datetime.now(UTC),
    )


async def _context(client: httpx.AsyncClient, turn: Turn, index: RoleProcess) -> str:
    """The prompt with the turn in it.

    Raises:
        BenchFailed: It did not come.
    """
    wanted = {
        "user_id": turn.user_id,
        "app_id": turn.app_id,
        "query": turn.content,
        "after": {"session_id": turn.session_id, "turn": turn.turn, "timeout_ms": _WAIT_MS},
    }
    answer = await client.post("/v1/context", json=wanted)
    if answer.status_code != httpx.codes.OK:
        raise BenchFailed(f"POST /v1/context answers {answer.status_code}: {answer.text[:500]}\n{index.log_tail()}")
    return str(answer.json()["prompt"])
