"""Deterministic ids."""

from __future__ import annotations

from uuid import UUID, uuid5

import pytest

from models.events import Position
from models.events.ids import event_id, named_id

NAMESPACE = UUID("6f0d7a3c-6f0b-5a55-9a35-1d2f8f2a7c11")


@pytest.mark.parametrize("n", range(64))
def test_named_id_is_the_standard_uuid5(n: int) -> None:
    """The faster formatting sets version and variant as `uuid.uuid5` does, whatever the hash."""
    assert str(uuid5(NAMESPACE, f"alert\x1fé-{n}")) == named_id("alert", f"é-{n}")


def test_event_id_tells_causes_apart() -> None:
    """Kind, key, each part of the place and ordinal all count; the same cause has the same id."""
    here = Position("t", 0, 7)
    ids = [
        event_id("profile_updated", "s", here),
        event_id("alert_changed", "s", here),
        event_id("profile_updated", "s2", here),
        event_id("profile_updated", "s", Position("u", 0, 7)),
        event_id("profile_updated", "s", Position("t", 1, 7)),
        event_id("profile_updated", "s", Position("t", 0, 8)),
        event_id("profile_updated", "s", here, 1),
    ]

    assert (7, ids[0]) == (len(set(ids)), event_id("profile_updated", "s", Position("t", 0, 7)))
