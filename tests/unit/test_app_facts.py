"""What a memory's sentences say of its user is kept with it, so that it need not be found again."""

from __future__ import annotations

import msgspec

from models.app.memory import FACTS_CHARS, KeptMemory, facts_to_keep
from models.events import AppMemoryChanged
from tests.support.app_driver import Space

OSLO, BERGEN = "I'm from Oslo.", "I'm from Bergen."


def kept(space: Space) -> dict[int, tuple[dict[str, str], ...] | None]:
    """Number of a memory → its facts, as stored."""
    space.store()
    return {number: memory.facts for number, memory in space.memories.items()}


def test_a_state_without_them_gives_the_same() -> None:
    """An older release kept none."""
    newer, older = Space(), Space()
    for space in (newer, older):
        space.end(said=OSLO)
    assert kept(older)[1] is not None
    fields = list(msgspec.structs.astuple(older.memories[1]))[:-1]
    older.stored["m0"] = msgspec.msgpack.encode(fields)
    older.state = older.load()

    assert older.memories[1].facts is None

    for space in (newer, older):
        space.end(said=BERGEN)

    assert newer.outputs == older.outputs
    assert newer.of(AppMemoryChanged)[-1].conflicts_with == [2]


def test_many_facts_are_not_kept() -> None:
    """They are found when they are needed; the state stays bounded."""
    content = " ".join(f"User is allergic to {chr(97 + n % 26) * 30}{n}." for n in range(60))

    assert facts_to_keep(content, {}) is None
    assert sum(len(value) for each in facts_to_keep(content[:400], {}) or () for value in each.values()) < FACTS_CHARS
    assert KeptMemory.__struct_defaults__[-1] is None
