"""Does the acts of a plan, each at its time, and remembers when it was done."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic, time

from aiokafka.errors import KafkaError

from jobs.lab.chaos.actions import Action, FaultKind, Outage
from jobs.lab.chaos.delays import Fault
from jobs.lab.chaos.supervisor import Supervisor
from jobs.operate.broker.local_kafka import LocalKafka
from models.errors import StoreUnavailable
from streams.kafka.client import admin
from streams.kafka.topics import existing_topics, set_config
from streams.settings import Settings

_LIMIT = "max.message.bytes"
_LIMIT_BYTES = 32
"""Less than an empty record batch has."""


class FaultInjector:
    """Harms one run's processes.

    Attributes:
        done: Every act that was done, as it ended.
        acts: How often each kind was.
    """

    def __init__(
        self, settings: Settings, supervisor: Supervisor, broker: LocalKafka, report: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._supervisor = supervisor
        self._broker = broker
        self._report = report
        self._rejecting: set[str] = set()
        self.done: list[Fault] = []
        self.acts: Counter[str] = Counter()

    async def do(self, plan: Sequence[Action]) -> None:
        """Do everything of the plan and wait until the last outage is over."""
        began_s = monotonic()
        beside: list[asyncio.Task[None]] = []
        try:
            for action in plan:
                await asyncio.sleep(max(0.0, began_s + action.at_s - monotonic()))
                self._report(f"{action.at_s:7.3f} s  {action.act} {action.place}")
                doing = asyncio.create_task(self._act(action))
                if action.act is FaultKind.BROKER:
                    await doing
                beside.append(doing)
            await asyncio.gather(*beside)
        finally:
            for task in beside:
                task.cancel()

    async def _act(self, action: Action) -> None:
        self.acts[action.act] += 1
        began_ms = now_ms()
        match action.act:
            case FaultKind.KILL:
                self._supervisor.kill(action.place)
            case FaultKind.FREEZE:
                await self._supervisor.freeze(action.place, action.lasts_s)
            case FaultKind.STOP:
                await self._supervisor.stop(action.place)
            case FaultKind.JOIN_OR_LEAVE:
                await self._supervisor.join_or_leave(action.place)
            case FaultKind.BROKER:
                await asyncio.to_thread(self._broker.kill)
                self._supervisor.kills += 1
                await asyncio.sleep(action.lasts_s)
                await asyncio.to_thread(self._broker.restart)
            case FaultKind.VECTORS:
                await self._supervisor.fail_vectors(Outage(action.place), action.lasts_s)
            case FaultKind.REJECT:
                await self._reject(action.place, action.lasts_s)
        ended_ms = began_ms if action.act is FaultKind.KILL else now_ms()
        self.done.append(Fault(action.act, action.place, began_ms, ended_ms))

    async def _reject(self, topic: str, seconds: float) -> None:
        """Let the broker refuse whatever is written to a topic; nothing if it does already."""
        name = f"{self._settings.topic_prefix}.{topic}"
        if name in self._rejecting:
            return
        self._rejecting.add(name)
        before: str | None = None
        try:
            async with admin(self._settings.kafka) as client:
                before = (await existing_topics(client, [name]))[name].config[_LIMIT]
                await set_config(client, {name: {_LIMIT: str(_LIMIT_BYTES)}})
            await asyncio.sleep(seconds)
        except (KafkaError, StoreUnavailable) as error:  # the broker was killed under it
            self._report(f"           reject {topic}: {type(error).__name__}")
        finally:
            if before is not None:
                await self._accept(name, before)
            self._rejecting.discard(name)

    async def _accept(self, name: str, limit: str) -> None:
        """Set the limit back, however long the broker is away."""
        while True:
            with suppress(KafkaError, StoreUnavailable):
                async with admin(self._settings.kafka) as client:
                    await set_config(client, {name: {_LIMIT: limit}})
                return
            await asyncio.sleep(0.5)  # a broker that is down


def now_ms() -> int:
    """Wall clock, ms since 1970."""
    return int(time() * 1000)
