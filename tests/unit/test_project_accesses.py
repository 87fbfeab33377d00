"""Recording what readers retrieved: in which batches it goes to the log, and what is told of what cannot."""

import asyncio
from typing import Any

import pytest

from models.errors import DeliveryFailed
from models.events import MemoriesAccessed
from models.events.base import Position
from models.events.project import MOST_NAMED
from streams.api.projects import accesses as project_accesses
from streams.api.projects.accesses import AccessRecorder
from tests.support.api_doubles import counted as counter
from tests.support.projects_indexed import NOW


class Log:
    """Takes commands, but fails as often as it was told to; while `open` is not set it does not answer."""

    def __init__(self, fails: int = 0, error: Exception | None = None) -> None:
        self.error = error or DeliveryFailed("away")
        self.sent: list[MemoriesAccessed] = []
        self.asked = asyncio.Semaphore(0)
        self.fails = fails
        self.open = asyncio.Event()
        self.open.set()

    async def send(self, command: Any) -> Position:
        """Take it, or fail."""
        self.asked.release()
        await self.open.wait()
        if self.fails:
            self.fails -= 1
            raise self.error
        assert isinstance(command, MemoriesAccessed)
        self.sent.append(command)
        return Position("commands.v1", 0, len(self.sent))


def counts() -> dict[str, float]:
    """Accesses by what became of them, since the process began."""
    return {each: counter("project_accesses_total", result=each) for each in ("recorded", "failed", "refused")}


@pytest.fixture
def counted() -> dict[str, float]:
    """What was counted before the test."""
    return counts()


def since(before: dict[str, float]) -> dict[str, float]:
    """What was counted since, without zeros."""
    return {result: count - before[result] for result, count in counts().items() if count != before[result]}


def recording(log: Log | None) -> AccessRecorder:
    """A recorder at a fixed time."""
    return AccessRecorder(log, clock=lambda: NOW)


def ids(count: int, kind: str = "m") -> list[str]:
    """So many ids."""
    return [f"{kind}-{n}" for n in range(count)]


async def test_one_event_per_project(counted: dict[str, float]) -> None:
    """Everything that was retrieved within a while, in order, as often as it was; what is alike elsewhere is not."""
    log = Log()
    recorder = recording(log)
    async with recorder.running():
        recorder.record("a", "web", ["m-1", "m-2"])
        recorder.record("b", "web", ["m-1"])
        recorder.record("a", "web", ["m-2"])
        recorder.record("a", "shop", [])

    assert [
        MemoriesAccessed(app_id="a", project_id="web", timestamp=NOW, ids=["m-1", "m-2", "m-2"]),
        MemoriesAccessed(app_id="b", project_id="web", timestamp=NOW, ids=["m-1"]),
    ] == log.sent
    assert since(counted) == {"recorded": 4}


async def test_many_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that is full goes out at once, and what is more than an event holds goes in several."""
    monkeypatch.setattr(project_accesses, "WRITE_AFTER_S", 600.0)
    log, many = Log(), ids(2 * MOST_NAMED + 1)
    recorder = recording(log)
    async with recorder.running(), asyncio.timeout(60):
        recorder.record("a", "web", many)
        for _ in range(3):
            await log.asked.acquire()

    assert [many[:MOST_NAMED], many[MOST_NAMED:-1], many[-1:]] == [each.ids for each in log.sent]


@pytest.mark.parametrize(("fails", "expected"), [(1, {"recorded": 3}), (2, {"failed": 2, "recorded": 1})])
async def test_a_log_that_does_not_answer_is_asked_twice(
    fails: int, expected: dict[str, float], counted: dict[str, float]
) -> None:
    """Then it is counted, and what comes next is tried again."""
    log = Log(fails)
    recorder = recording(log)
    async with recorder.running():
        recorder.record("a", "web", ids(2))
        recorder.record("b", "web", ids(1))

    assert expected == since(counted)


async def test_a_process_that_takes_no_commands_says_so(counted: dict[str, float]) -> None:
    """Reading works all the same."""
    recorder = recording(None)
    async with recorder.running():
        recorder.record("a", "web", ids(2))

    assert since(counted) == {"refused": 2}
