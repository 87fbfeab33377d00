"""The archive role between landings: whoever waits for it, to stop or to let go, does not wait for maintenance."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import TopicPartition
from structlog.testing import capture_logs

from models.policy import IntakePolicy
from streams.roles import archive
from streams.roles.archive import Archivist
from streams.settings import load_settings


class Merging:
    """Maintenance that lasts until it is told to end."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()

    async def maintain(self, is_urgent: Callable[[], bool]) -> None:
        """Look again and again."""
        self.begun.set()
        while not is_urgent():  # noqa: ASYNC110 - as the thread that merges does
            await asyncio.sleep(0)
        self.ended.set()


class Group:
    """Doubles the consumer; leaving takes for ever."""

    def __init__(self) -> None:
        self.is_left = False

    def subscribe(self, *_: Any, **__: Any) -> None:
        """Nothing to read."""

    async def start(self) -> None:
        """Nowhere to connect."""

    async def getmany(self, **_: Any) -> dict[TopicPartition, list[Any]]:
        """Nothing comes."""
        await asyncio.sleep(0)
        return {}

    def assignment(self) -> frozenset[TopicPartition]:
        """None."""
        return frozenset()

    async def stop(self) -> None:
        """The coordinator does not answer."""
        self.is_left = True
        await asyncio.Event().wait()


@pytest.fixture
async def archivist(monkeypatch: pytest.MonkeyPatch) -> tuple[Archivist, Merging, Group]:
    """The role without a broker, with its doubles."""
    monkeypatch.setattr(archive, "_STOP_WITHIN_S", 0.01)
    made = Archivist(load_settings(), {}, IntakePolicy(), cast("Any", SimpleNamespace()))
    merging, group = Merging(), Group()
    made._upkeep, made._consumer = cast("Any", merging), group
    return made, merging, group


async def test_a_revocation_ends_maintenance(archivist: tuple[Archivist, Merging, Group]) -> None:
    """Before the group gives up on this member; it goes on after the next assignment."""
    role, merging, _ = archivist
    round_ = asyncio.create_task(role._round())
    await merging.begun.wait()

    await role.on_partitions_revoked(set())
    await round_

    assert merging.ended.is_set()
    assert role._is_urgent()


async def test_a_stop_ends_maintenance_and_leaves_in_time(archivist: tuple[Archivist, Merging, Group]) -> None:
    """A coordinator that is away is left without goodbye."""
    role, merging, group = archivist
    stop = asyncio.Event()
    with capture_logs() as logs:
        running = asyncio.create_task(role.run(stop))
        await merging.begun.wait()
        stop.set()
        await running

    assert merging.ended.is_set()
    assert group.is_left
    assert "archive_left_without_goodbye" in {each["event"] for each in logs}
