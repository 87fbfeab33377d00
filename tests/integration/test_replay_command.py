"""`turntide ops replay` on the real broker: digests of the log, and differences where no role has run."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from typer.testing import Result

from jobs.shared.log_read import log_extent
from jobs.shared.sending import send_to_turns
from models.events import Position
from models.events.topics import COMMANDS, TURNS
from models.risk.scorer import RuleScorer
from models.wire.codec import encode
from models.wire.envelope import key_of
from streams.kafka.producer import Record
from streams.oracle.replay import SessionReplay, feed_log
from streams.settings import Settings
from streams.wiring import embedder_of, policy_of
from tests.support.command_line import refused, turntide
from tests.support.fault_driver import (
    assert_equal_to_replay,
    disorder,
    recorded,
    said,
    send,
    sessions_role,
    until,
    write,
)
from tests.support.user_driver import added


async def replay(*arguments: str) -> Result:
    """Run the command."""
    return await asyncio.to_thread(turntide, "replay", *arguments, "--output", "json")


@pytest.mark.usefixtures("environment")
async def test_digests_and_differences(settings: Settings) -> None:
    """Three turns and a broken record: a digest of their session, and all of it missing where nothing folded them.

    A command that is on the log is a user's: its state has a digest too. One session is not compared: that would hide
    the others' differences.
    """
    forwarded = added("Good day.", "s-9", 0, Position("t", 0, 0), datetime.now(UTC))
    await send_to_turns(
        settings, [*(recorded(said(n, session_id="s-1")) for n in range(3)), Record(b"s-1", b"{broken")]
    )
    await write(settings, COMMANDS, [Record(key_of(forwarded), encode(forwarded))])
    whole, again, first = [await replay("--session", "s-1", *limit) for limit in ((), (), ("--limit", "1"))]
    single = await replay("--sessions")
    compared = await replay("--compare", "--wait-s", "0")

    assert (whole.exit_code, whole.stdout) == (0, again.stdout)
    (digest,), (digest_of_first,) = json.loads(whole.stdout), json.loads(first.stdout)
    assert (digest["entity"], digest["sha256"] == digest_of_first["sha256"]) == ("session:a/s-1", False)
    assert [("sessions", "session:a/s-1"), ("memory", "user:a/u")] == [
        (each["role"], each["entity"]) for each in json.loads(single.stdout)
    ]
    found = json.loads(compared.stdout)
    assert (compared.exit_code, found["counts"]["dead-letters.v1 missing"]) == (1, 1)
    assert found["counts"]["state missing"] == found["checked"]["state"] > 3
    assert {"archive", "index", "users' state"} == found["not_checked"].keys()
    assert (3, 1) == (found["counts"]["commands.v1 missing"], found["counts"]["commands.v1 false"])
    assert "--compare compares everything" in refused("replay", "--compare", "--session", "s-1")


async def test_what_was_read_is_not_read_again(settings: Settings) -> None:
    """A replay that goes on begins behind the last record that it was given, refused ones at the end too."""
    policy, read = policy_of(settings), list[int]()
    replay = SessionReplay(policy, embedder_of(settings), RuleScorer())
    await send_to_turns(settings, [recorded(said(0)), Record(b"s", b"{broken"), Record(b"s", b"{broken too")])
    await feed_log(settings, replay, progress=read.append)
    await feed_log(settings, replay, progress=read.append)
    await send_to_turns(settings, [recorded(said(1))])
    whole = await feed_log(settings, replay, progress=read.append)

    assert read == [3, 4]
    assert (len(whole.turn_keys), len(whole.outputs) > 1) == (2, True)


async def test_a_log_that_grows_is_compared(settings: Settings) -> None:
    """While turns arrive all the time, state and outputs equal a replay of the log up to where the state stands."""
    async with sessions_role(settings):
        producing = asyncio.create_task(send(settings, disorder(7, 6_000), per_s=200.0))
        await until(lambda: has_turns(settings), "turns arrive")
        settled = await assert_equal_to_replay(settings)
        is_producing = not producing.done()
        producing.cancel()
        await asyncio.gather(producing, return_exceptions=True)

    assert is_producing
    assert len(settled.oracle.turn_keys) > 0


async def has_turns(settings: Settings) -> bool:
    """Whether there is a turn in the log."""
    return any(end > start for start, end in (await log_extent(settings, TURNS)).values())
