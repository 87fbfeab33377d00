"""Waiting until a turn is in memory, or for what comes of a command, and no longer than asked."""

import asyncio
from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest
from msgspec.structs import replace

from models.errors import StoreUnavailable
from models.events import Position, SessionName
from models.events.app import AppMemoriesChanged, MemoriesPurged
from models.events.base import CommandResult
from models.events.topics import TURNS
from streams.api.commands import MAX_WAITING, POLL_S, WAIT_S, SpaceCommands
from streams.api.mcp.tools import AskedMemory, tools_of
from streams.api.sessions import turns
from streams.api.sessions.turns import Waiting, is_visible
from streams.api.users.freshness import HEADERS
from streams.api.users.messages import After, UserFacts
from streams.http.problems import Problem
from streams.http.security import Caller, reading_for
from streams.index.session_memory import forget_before
from tests.support.api_apps import AT, Apps, space
from tests.support.api_doubles import Clock, Served, fact, said, stats

FIELDS = ("known", "caught_up")
AT_OFFSET_7 = Position(TURNS.name, 3, 7)


class Later:
    """A turn that becomes visible at a look."""

    def __init__(self, at_look: int) -> None:
        self.looks = 0
        self.at_look = at_look

    async def visible(self, _app_id: str | None, _after: After) -> bool:
        """Whether it is this look or a later one."""
        self.looks += 1
        return self.looks >= self.at_look


@pytest.mark.parametrize("after", [After("s", 0), After("s", message_id="m-1")], ids=["by number", "by id"])
@pytest.mark.parametrize(
    ("seen", "expected"), [({"3": 7}, True), ({"3": 8}, True), ({"3": 6}, False), ({"2": 9}, False), (None, False)]
)
async def test_a_users_turn_is_visible_when_its_memory_has_it(
    served: Served, seen: dict[str, int] | None, expected: bool, after: After
) -> None:
    """The turn's point alone is not enough: its facts may be missing. Offsets count within a partition."""
    mine = replace(said(0, "my name is Alex"), message_id="m-1")
    await served.say(mine, replace(mine, app_id="b", turn=5), places=[AT_OFFSET_7, AT_OFFSET_7])
    if seen is not None:
        served.users.known_users.append(stats(("s", 0), seen=seen))

    with reading_for(Caller()):
        assert await is_visible(served.turns, served.users, "a", after) is expected


@pytest.mark.parametrize(
    ("seen", "at_end", "expected"),
    [
        (None, True, ("false", "true")),
        ("7", True, ("true", "true")),
        ("7", False, ("true", "false")),
        ("7", None, ("true", None)),
        ("6", None, ("true", "false")),
        ("-", True, ("true", "false")),
    ],
    ids=["unknown", "no facts", "not indexed yet", "cannot be told", "not in memory yet", "of a new user"],
)
async def test_an_empty_answer_says_why(
    seen: str | None, at_end: bool | None, expected: tuple[str, str | None]
) -> None:
    """Nobody heard of, something on its way, or nothing to tell: headers of lists, fields of objects and tools."""
    made = Served(at_end=lambda: at_end)
    if seen is not None:
        late = replace(said(3, "late"), turn=2)  # never comes into memory
        places = [AT_OFFSET_7, Position(TURNS.name, 3, 9)]
        await made.say(said(3, "hello there"), late, said(0, "of b", app="b"), places=[*places, AT_OFFSET_7])
        made.users.known_users += [] if seen == "-" else [stats(("s", 3), seen={"3": int(seen)})]
    asked = {"user_id": "u", "app_id": "a", "query": "what"}
    async with made.client() as client:
        lists = [await client.get(f"/v1/users/u/{end}?app_id=a") for end in ("facts", "episodes", "recent")]
        objects = [(await client.get("/v1/users/u/standing?app_id=a")).json()]
        objects += [(await client.post(f"/v1/{end}", json=asked)).json() for end in ("retrieve", "context", "search")]
    with reading_for(Caller()):
        tools = {each.tool.name: each for each in tools_of(AskedMemory(made.reader, MagicMock(), MagicMock()))}
        given = {"user_id": "u", "app_id": "a"}
        called = [await tools["list_facts"].call(given)]
        called += [await tools[name].call(asked) for name in ("search_memory", "get_context")]

    told: list[tuple[str | None, ...]] = [tuple(map(each.headers.get, [*HEADERS][: len(FIELDS)])) for each in lists]
    objects += [msgspec.to_builtins(each.structured) for each in called]
    told += [tuple(None if each[name] is None else str(each[name]).lower() for name in FIELDS) for each in objects]
    assert told == [expected] * 10
    assert ("is unknown" in called[0].text) is (expected == ("false", "true"))
    assert ("yet" in called[0].text) is (expected[1] == "false")


async def test_what_is_answered_of_a_user_says_which_language_no_facts_are_read_of(served: Served) -> None:
    """Lists by a header, objects by a field; a user's first German turn is said, an English one's language too."""
    german = stats(("s", 3), language="de", unsupported_turns=1)
    served.users.known_users += [german, stats(("t", 0), user="v")]
    async with served.client() as client:
        facts = [await client.get(f"/v1/users/{user}/facts?app_id=a") for user in "uv"]
        context = await client.post("/v1/context", json={"user_id": "u", "app_id": "a", "query": "was"})

    assert [each.headers["Turntide-Language"] for each in facts] == ["unsupported", "en"]
    assert context.json()["language"] == "unsupported"


async def test_a_standing_counts_no_turn_of_an_erased_session(served: Served) -> None:
    """The number of the user's newest turn stays, of this app's user alone."""
    texts = [said(0, "hello"), said(1, "again"), said(0, "other", session="t"), said(0, "of b", app="b")]
    await served.say(*texts, places=[Position(TURNS.name, 0, n) for n in range(4)])
    served.users.known_users.append(stats(("s", 0), ("s", 1), ("t", 0), seen={"0": 9}))
    counted = []
    async with served.client() as client:
        for _ in range(2):
            told = (await client.get("/v1/users/u/standing?app_id=a")).json()
            counted.append((told["turns"], told["turn_count"]))
            await forget_before(served.store, {(SessionName("a", "s"), 0): 100})

    assert [number for number, _ in counted] == [3, 1]
    assert len({count for _, count in counted}) == 1


async def test_who_is_known_to_another_app_is_not_known() -> None:
    """Neither by turns nor by what their memory says of itself."""
    made = Served()
    await made.say(said(0, "hello there", app="b"), places=[AT_OFFSET_7])
    made.users.known_users.append(stats(("s", 0), app="b"))
    with reading_for(Caller(apps=frozenset({"a", "c"}))):
        answer = await made.reader.facts(UserFacts(user_id="u"))
        own = await made.reader.facts(UserFacts(user_id="u", app_id="c"))

    assert [answer.headers, own.headers] == [{"Turntide-Known": "false"}] * 2


async def test_a_session_or_an_app_is_known_by_its_turns(served: Served) -> None:
    """Where a search names no user; one of another app's id is not meant."""
    await served.say(said(0, "hello there"))
    asked: list[dict[str, str]] = [{"session_id": "s"}, {"session_id": "t"}, {"app_id": "a"}, {"app_id": "b"}]
    async with served.client() as client:
        answers = [(await client.post("/v1/search", json={"query": "bread", **each})).json() for each in asked]

    assert [(each["turns"], each["known"]) for each in answers] == [([], True), ([], False), ([], True), ([], False)]


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


async def test_the_result_is_waited_for_no_longer_than_is_allowed() -> None:
    """Looked for at once and every 20 ms, among those of others; then it is pending: it is in the log."""
    clock, apps = Clock(), Late(2, results=[OTHER, DONE])
    assert await commands_over(apps, clock).carry_out(COMMAND) == DONE
    assert clock.slept == [POLL_S, POLL_S]
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
