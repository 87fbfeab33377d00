"""Floods of refused records: what keeps its bytes is decided by the log, however it is read."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from aiokafka.structs import ConsumerRecord

from models.events import MemoryDeleted
from models.policy import IntakePolicy, Policy
from models.wire.codec import encode
from models.wire.envelope import Headers, headers_for
from models.wire.flood import FloodGauge
from streams.inference.intake import decode, decode_commands

LIMITS = IntakePolicy(dead_letter_consecutive=10, dead_letter_window=20, dead_letter_ratio=0.8)
RULES = Policy(intake=LIMITS)


def record(offset: int, value: bytes, *, topic: str = "t.turns.v1", headers: Headers | None = None) -> ConsumerRecord:
    """A record of the first partition."""
    return ConsumerRecord(topic, 0, offset, 1_767_600_000_000, 1, b"k", value, None, 1, len(value), headers or ())


@pytest.mark.parametrize(
    ("refused", "thinned"),
    [
        (range(10), []),
        (range(15), range(10, 15)),
        (range(9), []),
        ([*range(9), *range(10, 19)], range(17, 19)),  # 16 of 20, though not in a row
        ([*range(12), 40, 41], range(10, 12)),
        (range(30), [n for n in range(10, 30) if n != 20]),  # a sample keeps its bytes
        (range(0, 200, 2), []),
    ],
)
def test_the_limits(refused: range | list[int], thinned: range | list[int]) -> None:
    """Ten in a row, or sixteen of the last twenty offsets."""
    gauge = FloodGauge(LIMITS)

    assert [offset for offset in refused if gauge.refuse(offset)] == list(thinned)


@pytest.mark.parametrize("seed", range(20))
def test_letters_are_the_same_wherever_a_worker_takes_over(seed: int) -> None:
    """Whole, cut into batches, and from the middle of the log after looking back."""
    rng = random.Random(seed)
    log = [
        record(n, b"junk" if rng.random() < 0.85 else b'{"session_id":"k","user_id":"u","turn":1}')
        for n in range(200)
        if rng.random() < 0.95
    ]
    whole = decode(log, RULES, flood=FloodGauge(LIMITS)).dead
    cut, batches, gauge = rng.randrange(1, len(log)), [], FloodGauge(LIMITS)
    start = log[cut].offset
    decode([each for each in log[:cut] if each.offset >= start - gauge.reach], RULES, flood=gauge)
    rest = log[cut:]
    while rest:
        size = rng.randrange(1, 30)
        batches += decode(rest[:size], RULES, flood=gauge).dead
        rest = rest[size:]

    assert batches == [letter for letter in whole if letter.offset >= start]
    assert any(letter.value is None for letter in whole)


def test_what_is_done_with_counts() -> None:
    """State may be ahead of the committed offset: those letters are written already, and part of the flood."""
    log = [record(n, b"junk") for n in range(15)]

    letters = decode(log, RULES, above=11, flood=FloodGauge(LIMITS)).dead

    assert [(letter.offset, letter.value) for letter in letters] == [(12, None), (13, None), (14, None)]


def test_commands_of_the_api_never_count() -> None:
    """They bear their schema; what they ask for may be refused, and keeps its bytes."""
    command = MemoryDeleted(app_id="a\x01", memory_id=1, timestamp=datetime(2026, 1, 5, tzinfo=UTC))
    for headers, is_flood in ((headers_for(command), False), ([], True)):
        log = [record(n, encode(command), topic="t.commands.v1", headers=headers) for n in range(15)]
        letters = decode_commands(log, RULES, flood=FloodGauge(LIMITS)).dead

        assert len(letters) == 15
        assert any(letter.value is None for letter in letters) is is_flood
