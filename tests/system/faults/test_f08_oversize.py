"""F8: oversize turns, records and state. A dead letter or cut into fitting batches; never fatal, also not again."""

import json
from functools import partial
from typing import Any

import pytest

from models.events import MAX_CONTENT_BYTES
from models.events.topics import DEAD_LETTERS, PROFILES, TURNS
from streams.kafka.producer import Record
from streams.settings import Settings
from tests.support.fault_driver import assert_equal_to_replay, events, recorded, said, send, sessions_role, until

pytestmark = pytest.mark.fault("F8")

MIB = 1024 * 1024
GOOD = json.loads(recorded(said(0, session_id="big")).value or b"")
COMPRESSED: dict[str, Any] = {"compression_type": "gzip", "max_request_size": 64 * MIB}
"""The broker's limit is for compressed batches: what is repetitive passes it at any size."""
OVERSIZE: dict[str, tuple[Record, str]] = {
    "content a byte too long": (
        Record(b"big", json.dumps({**GOOD, "content": "x" * (MAX_CONTENT_BYTES + 1)}).encode()),
        "content_too_large",
    ),
    "record of 2 MiB": (Record(b"big", json.dumps({**GOOD, "extra": "x" * 2 * MIB}).encode()), "record_too_large"),
    "junk of 20 MiB": (Record(b"big", b"x" * 20 * MIB), "record_too_large"),
    "key of 3 MiB": (Record(b"k" * 3 * MIB, b"{}"), "record_too_large"),
}


async def letters(settings: Settings, count: int) -> dict[int, str]:
    """Reasons of the dead letters by offset, once there are so many."""
    found = {event.offset: event.reason for event in await events(settings, DEAD_LETTERS)}
    return found if len(found) >= count else {}


async def test_oversize_records_become_dead_letters(settings: Settings) -> None:
    """Between good turns, and again when they are met after a restart; the good turns are counted."""
    records = [record for record, _ in OVERSIZE.values()]
    good = [recorded(said(n)) for n in range(len(records) + 1)]
    mixed = [record for pair in zip(good, records, strict=False) for record in pair] + good[-1:]
    await send(settings, mixed, partition=0, **COMPRESSED)
    for _restart in range(2):
        async with sessions_role(settings) as task:
            found = await until(partial(letters, settings, len(records)), "the dead letters")
            settled = await assert_equal_to_replay(settings)
            assert not task.done()

    assert [found[1 + 2 * n] for n in range(len(records))] == [reason for _, reason in OVERSIZE.values()]
    assert settled.oracle.turns == len(good)
    kept = {event.offset: event for event in await events(settings, DEAD_LETTERS)}
    assert [len(kept[1 + 2 * n].value or b"") > MIB for n in range(len(records))] == [False, True, False, False]
    assert all("the original stands in the source topic" in kept[offset].detail for offset in (5, 7))


async def test_the_longest_turns_fit_whatever_they_become(settings: Settings) -> None:
    """One poll full of turns at the limit, in one session and in many, of one byte and of four bytes a character."""
    texts = ("x" * MAX_CONTENT_BYTES, "\U0001f984" * (MAX_CONTENT_BYTES // 4), "\x01" * (MAX_CONTENT_BYTES // 2))
    one = [said(n, session_id="one", content=texts[n % 3], risk=0.05 * n) for n in range(20)]
    many = [said(n, session_id=f"s-{k}", content=texts[k % 3], risk=0.9) for n in range(2) for k in range(10)]
    await send(settings, [recorded(turn) for turn in [*one, *many]], partition=0, **COMPRESSED)
    for _restart in range(2):
        async with sessions_role(settings) as task:
            settled = await assert_equal_to_replay(settings)
            assert not task.done()

    assert settled.oracle.turns == 40
    assert await events(settings, DEAD_LETTERS) == []
    assert {event.session_id for event in await events(settings, PROFILES)} >= {"one"}
    assert TURNS.max_message_bytes == MIB
