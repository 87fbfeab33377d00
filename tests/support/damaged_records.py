"""Records of every topic, each a valid one of the contracts with something in it damaged; by seed."""

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
from aiokafka.structs import ConsumerRecord

from models.entities import carried_by, entity_key
from models.events import InputEvent
from models.events.topics import TURNS, Topic
from models.wire.envelope import tag_of

_EXAMPLES = Path(__file__).parents[2] / "deploy" / "contracts" / "examples"
_RECEIVED_MS: Final = 1_790_000_000_000
_DEEP: Any = []
for _ in range(60):
    _DEEP = [_DEEP]
_BAD: tuple[Any, ...] = (
    *(2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30, -1, 0, 1e19, 1e308, -0.0, True, None, [], {}, _DEEP),
    *("", "x", "\x00", "\ud800", "a" * 300, "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "1e999"),
    *([None], [{}], ["\x00"], [2**63], {"a": 2**63}, {"": None}),
)


def damaged(topic: Topic, each: int, *, seed: int = 0) -> Iterator[ConsumerRecord]:
    """So many records of each example of a topic, at the offsets from 0 on.

    Args:
        topic: Which.
        each: Records per example.
        seed: Chooses what is damaged.
    """
    rng, offset = random.Random(f"{topic.name}/{seed}"), 0
    events = {tag_of(kind): kind for kind in (get_args(InputEvent) if topic is TURNS else carried_by(topic))}
    for path in sorted(_EXAMPLES.glob("*.json")):
        kind = events.get(path.name.partition(".")[0])
        if kind is None:
            continue
        whole = path.read_bytes()
        yield _record(topic, offset, kind, whole)
        for n in range(each):
            value = _flipped(whole, rng) if n % 8 == 0 else _replaced(json.loads(whole), rng)
            offset += 1
            yield _record(topic, offset, kind, value)
        offset += 1


def _replaced(document: Any, rng: random.Random) -> bytes:
    """One to three values are something else."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        holder, name = rng.choice(list(_places(document)))
        holder[name] = copy.deepcopy(rng.choice(_BAD))
    # Infinite numbers are written as producers of other languages do.
    return json.dumps(document).replace('"1e999"', rng.choice(("1e999", "Infinity", "NaN", '"1e999"'))).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for name in value if isinstance(value, dict) else range(len(value)):
            yield value, name
            yield from _places(value[name])


def _flipped(whole: bytes, rng: random.Random) -> bytes:
    """A few bytes are others, or its end is missing."""
    value = bytearray(whole)
    for _ in range(rng.choice((1, 2, 8))):
        value[rng.randrange(len(value))] = rng.randrange(256)
    return bytes(value if rng.random() < 0.8 else value[: rng.randrange(len(value))])


def _record(topic: Topic, offset: int, kind: type[Any], value: bytes) -> ConsumerRecord:
    """Under the key that it should have, so that it is not refused for that alone."""
    try:
        event = msgspec.json.decode(value, type=kind)
        key = (event.session_id if topic is TURNS else entity_key(event)).encode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError, LookupError, AttributeError):
        key = b"k"
    return ConsumerRecord(topic.name, 0, offset, _RECEIVED_MS, 1, key, value, None, len(key), len(value), ())
