"""Waiting until a turn is in memory: both the turn and what follows from it, and no longer than asked."""

from __future__ import annotations

import asyncio

import pytest

from models.errors import StoreUnavailable
from models.events import Position
from models.events.topics import TURNS
from streams.api.sessions import turns
from streams.api.sessions.turns import Waiting, is_visible
from streams.api.users.messages import After
from streams.http.problems import Problem
from streams.http.security import Caller, reading_for
from tests.support.api_doubles import Clock, Served, fact, said, stats

AT_OFFSET_7 = Position(TURNS.name, 3, 7)


class Later:
    """A turn that becomes visible at a look."""

    def __init__(self, at_look: int) -> None:
        self.looks = 0
        self.at_look = at_look

    async def visible(self, _app_id: str | None, _session_id: str, _turn: int) -> bool:
        """Whether it is this look or a later one."""
        self.looks += 1
        return self.looks >= self.at_look


@pytest.mark.parametrize(
    ("seen", "expected"), [({"3": 7}, True), ({"3": 8}, True), ({"3": 6}, False), ({"2": 9}, False), (None, False)]
)
async def test_a_users_turn_is_visible_when_its_memory_has_it(
    served: Served, seen: dict[str, int] | None, expected: bool
) -> None:
    """The turn's point alone is not enough: its facts may be missing. Offsets count within a partition."""
    await served.say(said(0, "my name is Alex"), places=[AT_OFFSET_7])
    if seen is not None:
        served.users.known_users.append(stats(("s", 0), seen=seen))

    with reading_for(Caller()):
        assert await is_visible(served.turns, served.users, "a", "s", 0) is expected


async def test_waiting_ends_with_the_turn_or_the_time() -> None:
    """Looked at every 20 ms, at once the first time; 504 after the caller's time, with a last look at its end."""
    clock, later, at_once = Clock(), Later(3), Later(1)
    await Waiting(later.visible, clock=clock, sleep=clock.sleep).until(After("s", 1))
    await Waiting(at_once.visible, clock=clock, sleep=clock.sleep).until(After("s", 1, timeout_ms=0))

    assert (later.looks, clock.slept, at_once.looks) == (3, [0.02, 0.02], 1)

    clock, never = Clock(), Later(10**6)
    with pytest.raises(Problem, match="turn_not_visible") as refused:
        await Waiting(never.visible, clock=clock, sleep=clock.sleep).until(After("s", 1, timeout_ms=50))

    assert (refused.value.status, round(clock.now_s, 9), never.looks) == (504, 0.05, 4)


async def test_waiters_never_shut_out_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number they are told to come again; who leaves makes room, also by an error."""
    monkeypatch.setattr(turns, "MAX_WAITING", 1)
    release = asyncio.Event()

    async def sleep(_seconds: float) -> None:
        await release.wait()
        raise StoreUnavailable("away")

    waiting = Waiting(Later(10**6).visible, clock=Clock(), sleep=sleep)
    first = asyncio.create_task(waiting.until(After("s", 1)))
    await asyncio.sleep(0)
    with pytest.raises(Problem, match="too_many_waiting") as refused:
        await waiting.until(After("s", 1))
    release.set()
    with pytest.raises(StoreUnavailable):
        await first
    with pytest.raises(StoreUnavailable):
        await waiting.until(After("s", 1))

    assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "2"})


async def test_a_request_reads_what_was_just_written(served: Served) -> None:
    """`after` holds retrieval and context back; without time, 504 says so."""
    await served.say(said(0, "my name is Alex"), places=[AT_OFFSET_7])
    asked = {"user_id": "u", "query": "x", "after": {"session_id": "s", "turn": 0, "timeout_ms": 0}}
    async with served.client() as client:
        early = [await client.post(path, json=asked) for path in ("/v1/retrieve", "/v1/context")]
        served.users.known_facts.append(fact("name", "Alex"))
        served.users.known_users.append(stats(("s", 0), seen={"3": 7}))
        found = (await client.post("/v1/retrieve", json=asked)).json()

    assert [(504, "turn_not_visible")] * 2 == [(answer.status_code, answer.json()["code"]) for answer in early]
    assert [each["value"] for each in found["structured_facts"]] == ["Alex"]
