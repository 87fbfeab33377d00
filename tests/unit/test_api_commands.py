"""Waiting for what comes of a command: until readers see it, and no longer than is allowed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from models.events.app import AppMemoriesChanged, CommandResult, MemoriesPurged
from streams.api.commands import MAX_WAITING, POLL_S, WAIT_S, SpaceCommands
from streams.http.problems import Problem
from tests.support.api_apps import AT, Apps, space
from tests.support.api_doubles import Clock

COMMAND = MemoriesPurged(app_id="a", timestamp=AT, request_id="r", by="local")
DONE = CommandResult(request_id="r", outcome="done", count=8)
OTHER = CommandResult(request_id="other", outcome="done", count=1)


class Late(Apps):
    """Carries nothing out; what is seen comes after so many looks."""

    def __init__(self, seen_after: int, **seen: Any) -> None:
        super().__init__(away=True)
        self.looks, self.seen_after = 0, seen_after
        self.all_stats = [space("a", **seen)]

    async def stats(self, app_id: str, user_id: str = "") -> AppMemoriesChanged | None:
        """What is in memory by now."""
        _ = app_id, user_id
        self.looks += 1
        return self.all_stats[0] if self.looks > self.seen_after else None


def commands_over(apps: Apps, clock: Clock) -> SpaceCommands:
    """Commands that wait by a clock of ours."""
    return SpaceCommands(apps, apps, clock=clock, sleep=clock.sleep)


async def test_the_result_is_waited_for() -> None:
    """Looked for at once and every 20 ms, among those of others."""
    clock, apps = Clock(), Late(2, results=[OTHER, DONE])

    assert await commands_over(apps, clock).carry_out(COMMAND) == DONE
    assert clock.slept == [POLL_S, POLL_S]


async def test_no_longer_than_is_allowed() -> None:
    """Then it is pending: it is in the log."""
    clock, apps = Clock(), Late(10**9)

    assert await commands_over(apps, clock).carry_out(COMMAND) is None
    assert clock.now_s == pytest.approx(WAIT_S)
    assert apps.sent == [COMMAND]


@pytest.mark.parametrize(("partition", "offset", "waits"), [(0, 1, False), (0, 0, True), (1, 9, True)])
async def test_a_result_that_others_displaced_is_not_waited_for(partition: int, offset: int, waits: bool) -> None:
    """The space is beyond the command and tells of it no more; offsets of another partition say nothing."""
    clock, apps = Clock(), Late(0, results=[OTHER], partition=partition, offset=offset)

    assert await commands_over(apps, clock).carry_out(COMMAND) is None
    assert (clock.now_s > 0) is waits


async def test_waiters_do_not_shut_out_readers() -> None:
    """Beyond a number commands are refused before they are written; a place is free again after each."""
    apps, release = Late(10**9), asyncio.Event()

    async def sleep(_seconds: float) -> None:
        await release.wait()
        apps.seen_after, apps.all_stats = 0, [space("a", results=[DONE])]

    commands = SpaceCommands(apps, apps, sleep=sleep)
    waiting = [asyncio.create_task(commands.carry_out(COMMAND)) for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(Problem, match="too_many_waiting"):
        await commands.carry_out(COMMAND)
    release.set()

    assert await asyncio.gather(*waiting) == [DONE] * MAX_WAITING
    assert len(apps.sent) == MAX_WAITING
    assert await commands.carry_out(COMMAND) == DONE
