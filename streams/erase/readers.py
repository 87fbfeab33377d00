"""Waiting until roles have read what was written: their groups' committed offsets, and the archive's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from time import monotonic
from typing import Any

import structlog
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from models.errors import StoreUnavailable
from streams.erase.logs import Logs
from streams.index.generations import group_of
from streams.kafka.client import Extent

log = structlog.get_logger(__name__)

Positions = Mapping[TopicPartition, int]
WITHIN = timedelta(minutes=10)
"""How long one step waits for a role before the erasure begins anew."""
_POLL_S = 0.1
_ASK_S = 1.0
_ANSWER_WITHIN_S = 20.0
_SAY_EVERY_S = 30.0
_NOBODY = "Dead"
"""Kafka's state of a group that never was, or whose offsets have expired."""


class ReadersBehind(StoreUnavailable):
    """A role has not read what an erasure waits for; it stays pending and is tried again."""


class Readers:
    """Who has read how far; `landed` tells how far the archive's catalog is, `within` how long one wait may take."""

    def __init__(self, logs: Logs, landed: Callable[[], Awaitable[Positions]], *, within: timedelta = WITHIN) -> None:
        self._logs = logs
        self._landed = landed
        self._within_s = within.total_seconds()

    async def _groups_of(self, role: str) -> list[str]:
        """Its groups; of the index role those at work, one for each generation: the settings here may name an old one.

        If none is at work, the one that the settings name.
        """
        own = group_of(self._logs.settings, role)
        if role != "index":
            return [own]
        first = f"{self._logs.settings.topic_prefix}.{role}"
        named = {name for name in await self._listed() if name == first or name.startswith(f"{first}-")}
        return [name for name in sorted(named) if await self._members(name)] or [own]

    async def _here(self, role: str) -> list[str]:
        groups = await self._groups_of(role)
        return [group for group in groups if await self._committed(group) or await self._members(group)]

    async def _listed(self) -> set[str]:
        """Groups of this prefix."""
        listed = await _answered("any group", self._logs.admin.list_consumer_groups)
        return {name for name, *_ in listed if name.startswith(f"{self._logs.settings.topic_prefix}.")}

    async def works_here(self, role: str) -> bool:
        """Whether a worker of the role is there or has ever committed: one that never was has nothing to forget."""
        return bool(await self._here(role))

    async def all_beyond(self, ends: Positions, *, roles: Iterable[str]) -> None:
        """As `beyond` for each of the roles, sinks of alerts, and any other reader of this prefix that is at work."""
        groups = {group for role in roles for group in await self._groups_of(role)}
        others, sinks = await self._listed(), f"{self._logs.settings.topic_prefix}.notify."
        # What the archive commits is for those who watch the lag: its catalog is what counts.
        for group in sorted((groups | others) - {group_of(self._logs.settings, "archive")}):
            theirs = {topic for topic, _ in await self._committed(group)}
            mine = {place: end for place, end in ends.items() if place.topic in theirs}
            ours = group in groups or group.startswith(sinks)
            if mine and (ours or await self._members(group)):
                await self._group_beyond(group, mine)

    async def beyond(self, role: str, ends: Positions) -> None:
        """Wait until a role's group has committed up to these offsets; not for a role that never was here.

        Raises:
            ReadersBehind: It has not in time.
            StoreUnavailable: Kafka does not answer.
        """
        for group in await self._here(role):
            await self._group_beyond(group, ends)

    async def archived(self, ends: Positions) -> None:
        """Wait until the archive holds everything up to these offsets.

        Raises:
            ReadersBehind: It does not in time.
        """
        await self._wait("archive", self._landed, ends)

    async def _group_beyond(self, group: str, ends: Positions) -> None:
        async def positions() -> Positions:
            return await self._committed(group)

        await self._wait(group, positions, ends)

    async def _wait(self, who: str, positions: Callable[[], Awaitable[Positions]], ends: Positions) -> None:
        began_s = said_s = monotonic()
        asked_s = 0.0
        while behind := _behind(await positions(), ends):
            now_s = monotonic()
            if now_s - asked_s >= _ASK_S:
                if not await self._logs.holds_records(behind):
                    return
                asked_s = now_s
            if now_s - began_s > self._within_s:
                records = sum(extent.end - extent.start for extent in behind.values())
                raise ReadersBehind(
                    f"{who} has not read {records} records on {len(behind)} partitions after {self._within_s:g} s. "
                    "Is its worker running? The erasure stays pending until it has"
                )
            if now_s - said_s > _SAY_EVERY_S:
                said_s = now_s
                log.info("erasure_waits", for_group=who, partitions=len(behind), seconds=round(now_s - began_s))
            await asyncio.sleep(_POLL_S)

    async def _committed(self, group: str) -> Positions:
        found = await _answered(group, lambda: self._logs.admin.list_consumer_group_offsets(group))
        return {place: known.offset for place, known in found.items() if known.offset >= 0}

    async def _members(self, group: str) -> int:
        # One group in a request: aiokafka 0.14 reads the answer to its version 3 as one of version 2, which is shorter.
        (answer,) = await _answered(group, lambda: self._logs.admin.describe_consumer_groups([group]))
        ((_code, _name, state, _type, _protocol, members, *_),) = answer.groups
        return 0 if state == _NOBODY else len(members)


async def _answered(group: str, ask: Callable[[], Awaitable[Any]]) -> Any:
    """The broker's answer; a cluster that never had a group needs a moment to choose who keeps them.

    Raises:
        StoreUnavailable: There is none.
    """
    deadline_s = monotonic() + _ANSWER_WITHIN_S
    while True:
        try:
            return await ask()
        except KafkaError as error:
            if not error.retriable or monotonic() > deadline_s:
                raise StoreUnavailable(f"Kafka does not say how far {group} is: {error!r}. Is it well?") from error
            await asyncio.sleep(_POLL_S)


def _behind(positions: Positions, ends: Positions) -> dict[TopicPartition, Extent]:
    """What has not been read."""
    return {place: Extent(positions.get(place, 0), end) for place, end in ends.items() if positions.get(place, 0) < end}
