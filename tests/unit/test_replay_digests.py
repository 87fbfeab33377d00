"""Equal digests mean equal bytes."""

from __future__ import annotations

import pytest

from jobs.replay.command import digests

STATE = {1: {"s-1": {"head": b"h", "b0": b"x"}, "": {"clock": b"c"}}, 0: {"s-2": {"head": b"h"}}}


def test_digests_come_in_order() -> None:
    """One for each partition, with its sizes, whose own parts are no session; or one for each session or user."""
    shown = [(d.partition, d.entities, d.parts, d.bytes) for d in digests("sessions", STATE, single=False)]
    single = [(d.role, d.partition, d.entity) for d in digests("memory", STATE, single=True)]

    assert [(0, 1, 1, 1), (1, 1, 3, 3)] == shown
    assert [("memory", 0, "s-2"), ("memory", 1, "s-1")] == single


@pytest.mark.parametrize(
    "entities",
    [
        {"s-1": {"head": b"h", "b0": b"y"}},
        {"s-1": {"head": b"h", "b1": b"x"}},
        {"s-2": {"head": b"h", "b0": b"x"}},
        {"s-1": {"head": b"h", "b": b"0x"}},
    ],
)
def test_every_byte_and_name_counts(entities: dict[str, dict[str, bytes]]) -> None:
    """Another value, part or session, also where the joined text is the same."""
    base = digests("sessions", {0: {"s-1": {"head": b"h", "b0": b"x"}}}, single=False)[0]

    assert base.sha256 != digests("sessions", {0: entities}, single=False)[0].sha256
