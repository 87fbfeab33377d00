"""Cost of the live page to its role: many sessions that change, sent to many pages, of which some stop reading.

In this process, without sockets: the board, the hub and the streams as they are, at the other end a client that counts.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import perf_counter, process_time
from typing import Any

import psutil
from msgspec import structs

from jobs.lab.bench.folds import InMemory, Prepared
from jobs.lab.bench.measuring import Figures, say
from models.events import Mode, ProfileUpdated, RiskPoint
from models.policy import Policy
from streams.api.live.board import LiveBoard
from streams.api.live.hub import Hub
from streams.api.live.routes import LiveStream
from streams.settings.live import LiveSettings

STEPS_PER_S = 20
_NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class _CountingPage:
    """A page that counts what it is sent; a stuck one takes the head and nothing more."""

    def __init__(self, hub: Hub, *, stuck: bool) -> None:
        self.bytes = 0
        self.complete = asyncio.Event()
        self.last = b""
        self._stuck = stuck
        self._leaving = asyncio.Event()
        self.answering = asyncio.ensure_future(LiveStream(hub, None)({"type": "http"}, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        await self._leaving.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        body = message.get("body", b"")
        if self._stuck and body:
            await self._leaving.wait()
        self.bytes += len(body)
        if body:
            self.last = body
        if b'"more":false' in body:
            self.complete.set()

    def version(self) -> int:
        """Of the board, as it was told last."""
        return int(self.last.split(b"id: ", 1)[1].split(b"\n", 1)[0])

    def leave(self) -> None:
        self._leaving.set()


def _profiles() -> Callable[[str, int, float], ProfileUpdated]:
    """Makes profiles of sessions after so many turns, of the one that the fold gives of a conversation."""
    policy = Policy()
    partition, prepared = InMemory(policy), Prepared(policy)
    partition.take([prepared.line(n, "made", n, n, timedelta(seconds=n)) for n in range(10)])
    made = next(output for output in partition.outputs if isinstance(output, ProfileUpdated))

    def profile(session_id: str, number: int, score: float) -> ProfileUpdated:
        points = [RiskPoint(number, _NOW, score, score, Mode.CALM, "model")]
        return structs.replace(
            made, session_id=session_id, user_id=f"user-of-{session_id}", timestamp=_NOW, turn_count=number,
            last_turn=number, peak_risk=score, mean_risk=score, score=score, mode=Mode.CALM, risk_points=points,
        )  # fmt: skip

    return profile


async def measure(
    *, sessions: int = 10_000, pages: int = 20, stuck: int = 20, updates_per_s: int = 60, seconds: int = 30
) -> Figures:
    """Let sessions change, so many a second, before pages of which some stop reading."""
    plan = {"sessions": sessions, "pages": pages, "stuck": stuck, "updates_per_s": updates_per_s, "seconds": seconds}
    say(f"{sessions:,} sessions, {pages} pages that read, {stuck} that stop, for {seconds} s")
    board, profile = LiveBoard(max_sessions=max(100, sessions)), _profiles()
    names = [f"session-{n:06d}" for n in range(sessions)]
    spark = [RiskPoint(n, _NOW, 0.1, 0.123 + n / 100, Mode.CALM, "model") for n in range(40)]
    for name in names:
        board.take_profile(structs.replace(profile(name, 40, 0.5), risk_points=spark), 1)
    hub = Hub(board, LiveSettings(max_streams=pages + stuck))
    ticking, memory_mb = asyncio.create_task(hub.run()), {"all_sessions": _resident_mb()}
    began_s = perf_counter()
    reading = [_CountingPage(hub, stuck=False) for _ in range(pages)]
    stopped = [_CountingPage(hub, stuck=True) for _ in range(stuck)]
    await asyncio.gather(*[page.complete.wait() for page in reading])
    snapshot_ms = (perf_counter() - began_s) * 1_000
    memory_mb["snapshots"] = _resident_mb()
    sent, cpu_s, began_s = sum(page.bytes for page in reading), process_time(), perf_counter()
    chance, changed, steps = random.Random(1), 0, seconds * STEPS_PER_S  # noqa: S311 - the same ones each time
    for step in range(1, steps + 1):
        while changed < step * updates_per_s // STEPS_PER_S:
            changed += 1
            board.take_profile(profile(chance.choice(names), 40 + changed, chance.random()), changed)
        if step == steps // 2:
            memory_mb["middle"] = _resident_mb()
        await asyncio.sleep(max(0.0, began_s + step / STEPS_PER_S - perf_counter()))
    cpu_s, elapsed_s = process_time() - cpu_s, perf_counter() - began_s
    for _ in range(2):
        hub.tick()
        await asyncio.sleep(2 / STEPS_PER_S)
    memory_mb["end"] = _resident_mb()
    dropped = sum(page.answering.done() for page in stopped)
    for page in [*reading, *stopped]:
        page.leave()
    await asyncio.gather(*[page.answering for page in [*reading, *stopped]])
    ticking.cancel()
    return {
        "plan": plan,
        "snapshot_ms": round(snapshot_ms, 1),
        "cpu_us_per_update": round(cpu_s / changed * 1e6, 1),
        "cpu_ratio": round(cpu_s / elapsed_s, 4),
        "bytes_per_page_s": round((sum(page.bytes for page in reading) - sent) / pages / elapsed_s, 1),
        "missed": sum(board.version != page.version() for page in reading),
        "memory_mb": memory_mb,
        "dropped": dropped,
    }


def _resident_mb() -> float:
    return round(float(psutil.Process().memory_info().rss) / 2**20, 1)
