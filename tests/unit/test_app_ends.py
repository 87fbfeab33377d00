"""What the end of a conversation does to a space: new, again, without anything said, after it went on, too many."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from models.errors import RecoveryFailed
from models.events import AppMemoriesChanged, AppMemorySkipped
from models.events.app import MemoryDeleted, MemoryEdited
from models.policy import Policy
from tests.support.app_driver import Space, causes
from tests.support.entity_driver import NOON


@pytest.mark.parametrize(
    ("ask", "end"),
    [
        (False, {"turn_count": 0, "summary": ""}),
        (True, {"turn_count": 0, "summary": ""}),
        (False, {"summary": " \n "}),
    ],
    ids=["no turns", "no turns to ask about", "blank ones"],
)
def test_a_conversation_that_leaves_nothing_is_skipped(ask: bool, end: dict[str, Any]) -> None:
    """At once, and it costs nothing."""
    space = Space(ask=ask)
    outputs = space.end(session="s9", notables=[], **end)

    assert [type(output) for output in outputs] == [AppMemorySkipped, AppMemoriesChanged]
    assert (space.skipped, space.active) == ([("s9", "nothing_said")], {})
    assert (space.stats.skipped, space.stats.spent_units) == (1, 0.0)


def test_a_conversation_that_went_on_has_its_memory_remade() -> None:
    """In place, with the same number: what was said since is added, since the end tells of that alone."""
    space = Space()
    space.end(said="I decided to buy a red bicycle.", session="s")
    space.end(said="I decided to visit Oslo.")
    space.end(said="I prefer to ride in the morning.", session="s", first_turn=6, last_turn=9, turn_count=4)
    remade = space.active[1]

    assert causes(space.outputs) == [(1, "created"), (2, "created"), (1, "remade")]
    assert "red bicycle" in remade.content
    assert "morning" in remade.content
    assert (remade.created_at, remade.updated_at) == (NOON, NOON + timedelta(seconds=2))
    assert space.stats.created == 2


def test_a_remade_memory_is_no_less_important_and_knows_its_last_turn() -> None:
    """A word of thanks at the end does not make it less; turns told before are not told again as new."""
    space = Space()
    space.end(said="I decided to buy a red bicycle.", session="s", last_turn=9)
    before = space.active[1].importance
    space.end(
        session="s",
        notables=[],
        summary="The parcel with the bicycle comes on Monday morning.",
        first_turn=10,
        last_turn=30,
        turn_count=1,
    )
    assert (space.active[1].cause, space.active[1].importance) == ("remade", before)
    space.end(said="I decided to visit Oslo.", session="s", first_turn=12, last_turn=30)

    assert "bicycle" not in space.active[1].content


@pytest.mark.parametrize("command", [(MemoryDeleted, {}), (MemoryEdited, {"pinned": True})])
def test_a_memory_that_is_gone_or_pinned_is_not_remade(command: tuple[type, dict[str, bool]]) -> None:
    """Then there is a new one: what an admin pinned stays as it is."""
    space = Space()
    space.end(said="I decided to buy a red bicycle.", session="s")
    space.command(command[0], memory_id=1, **command[1])
    before = space.active.get(1)
    space.end(said="I decided to visit Oslo.", session="s", first_turn=6, last_turn=9)

    assert space.active.get(1) == before
    assert "bicycle" not in space.active[2].content


def test_nothing_is_made_where_it_is_switched_off() -> None:
    """Memories that are there stay, and admins can still remove them."""
    space = Space()
    space.fill(2)
    space.policy = Policy(apps=msgspec.structs.replace(space.policy.apps, enabled=False))
    assert space.end() == []
    assert space.command(MemoryDeleted, memory_id=1).outcome == "done"


@pytest.mark.parametrize(
    ("part", "data", "message"),
    [
        ("head", None, "part head is missing"),
        ("head", b"\xc1", "part head is unreadable"),
        ("head", msgspec.msgpack.encode([2]), "has version 2, this release reads 1"),
        ("m0", b"\x90", "part m0 is unreadable"),
    ],
)
def test_a_damaged_state_is_refused(part: str, data: bytes | None, message: str) -> None:
    """Rather than misread; the role sets the record aside."""
    space = Space()
    space.end()
    space.store()
    damaged = {name: value for name, value in (space.stored | {part: data}).items() if value is not None}

    with pytest.raises(RecoveryFailed, match=message):
        space.read(damaged)
