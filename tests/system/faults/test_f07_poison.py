"""F7: one record in a hundred is poison. Each becomes a dead letter with place and reason; the rest is untouched."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import partial

import pytest

from models.events import DeadLetter
from models.events.topics import DEAD_LETTERS
from streams.kafka.producer import Record
from streams.settings import Settings
from tests.fault_driver import assert_equal_to_replay, events, recorded, said, send, sessions_role, until

pytestmark = [pytest.mark.kafka, pytest.mark.system, pytest.mark.fault("F7")]

GOOD = json.loads(recorded(said(0, session_id="p")).value or b"")
POISON: dict[str, tuple[Record, str]] = {
    "undecodable": (Record(b"p", b"\xff\xfe\x00"), "not_json"),
    "cut short": (Record(b"p", json.dumps(GOOD).encode()[:-7]), "not_json"),
    "nested": (Record(b"p", b'{"session_id":"p","x":' + b"[" * 50_000), "not_json"),
    "wrong type": (Record(b"p", json.dumps({**GOOD, "turn": "one"}).encode()), "invalid_field"),
    "no user": (Record(b"p", json.dumps({**GOOD, "user_id": None}).encode()), "invalid_field"),
    "future": (Record(b"p", json.dumps({**GOOD, "timestamp": "2999-01-01T00:00:00Z"}).encode()), "future_timestamp"),
    "empty": (Record(b"p", b""), "not_json"),
    "tombstone": (Record(b"p", None), "null_value"),
    "no key": (Record(None, json.dumps(GOOD).encode()), "key_mismatch"),
    "a list": (Record(b"p", b"[1, 2]"), "invalid_field"),
}
SENT = 3_000
EVERY = 100


async def letters(settings: Settings, count: int) -> list[DeadLetter]:
    """The dead letters, once there are so many."""
    found: list[DeadLetter] = await events(settings, DEAD_LETTERS)
    return found if len(found) >= count else []


async def test_one_percent_poison(settings: Settings) -> None:
    """Every kind three times among good turns: place, reason and bytes are kept, and state equals the replay."""
    rng = random.Random(7)
    kinds = [*POISON] * (SENT // EVERY // len(POISON))
    records = [recorded(said(n // 40, session_id=f"s-{n % 40}")) for n in range(SENT)]
    where = dict(zip(rng.sample(range(SENT), len(kinds)), kinds, strict=True))
    for n, kind in where.items():
        records[n] = POISON[kind][0]
    async with sessions_role(settings) as task:
        placed = await send(settings, records)
        found = await until(partial(letters, settings, len(where)), "all dead letters")
        settled = await assert_equal_to_replay(settings)
        assert not task.done()

    expected = Counter(
        (placed[n].partition, placed[n].offset, POISON[kind][1], POISON[kind][0].key, POISON[kind][0].value)
        for n, kind in where.items()
    )
    assert Counter((each.partition, each.offset, each.reason, each.key, each.value) for each in found) == expected
    assert all(each.detail and each.stage == "decode" for each in found)
    assert settled.oracle.turns == SENT - len(where)
