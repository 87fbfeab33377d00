"""How a log is cut into batches, and where a crash falls, changes nothing about what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.events import ClockTicked, InputEvent, Position, Role, SessionEnded, Turn
from models.partition.sessions import Arrival, PartitionFold
from models.policy import PartitionPolicy, Policy, SessionPolicy
from models.wire.codec import encode
from tests.entity_driver import Entities, keep_entities

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
POLICY = Policy(session=SessionPolicy(timeout=timedelta(minutes=5), closed_retention=timedelta(minutes=20)))

EVENT = st.tuples(
    st.sampled_from(["turn", "turn", "turn", "turn", "turn", "ended", "tick"]),
    st.integers(0, 3),
    st.integers(0, 30),
    st.one_of(st.none(), st.floats(0, 1)),
    st.integers(0, 400),
)


def arrivals(events: Sequence[tuple[str, int, int, float | None, int]]) -> list[Arrival]:
    """A log: each event's time a little after, or long after, the one before."""
    now, log = START, []
    for offset, (kind, session, turn, risk, seconds) in enumerate(events):
        now += timedelta(seconds=seconds if seconds < 380 else 3600)
        session_id = f"s{session}"
        event: InputEvent
        match kind:
            case "turn":
                event = Turn(
                    session_id=session_id,
                    user_id="u",
                    app_id=f"a{session % 2}",
                    turn=turn,
                    role=Role.USER if turn % 2 == 0 else Role.ASSISTANT,
                    content=f"What is the limit of number {turn}?",
                    timestamp=now,
                    risk=risk,
                )
            case "ended":
                event = SessionEnded(session_id=session_id, timestamp=now)
            case _:
                event = ClockTicked(session_id="clock-0", timestamp=now)
        log.append(Arrival(event, Position("t", 0, offset), now, 0.1))
    return log


def apply(entities: Entities, fold: PartitionFold, log: Sequence[Arrival], outputs: dict[str, bytes]) -> None:
    """Fold and keep, as the role does; a repeated id must say the same."""
    for folded in fold.fold(log):
        for event in folded.outputs:
            assert outputs.setdefault(event.id, encode(event)) == encode(event)
        keep_entities(entities, folded.changed)


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENT, max_size=60), st.lists(st.integers(1, 10), min_size=1), st.lists(st.integers(0, 8), min_size=1))
def test_batches_and_crashes_change_nothing(
    events: list[tuple[str, int, int, float | None, int]], cuts: list[int], rewinds: list[int]
) -> None:
    """One call over the whole log equals many calls with a fresh fold and repeated records each time."""
    log = arrivals(events)
    whole: Entities = {}
    whole_outputs: dict[str, bytes] = {}
    apply(whole, PartitionFold(whole, POLICY), log, whole_outputs)

    cut: Entities = {}
    cut_outputs: dict[str, bytes] = {}
    position, step = 0, 0
    while position < len(log):
        size, rewind = cuts[step % len(cuts)], rewinds[step % len(rewinds)]
        begin = max(0, position - rewind)
        apply(cut, PartitionFold(cut, POLICY), log[begin : position + size], cut_outputs)
        position, step = position + size, step + 1

    assert cut == whole
    assert cut_outputs == whole_outputs


CROWDED = st.tuples(
    st.sampled_from(["turn", "turn", "turn", "turn", "turn", "turn", "ended", "tick"]),
    st.integers(0, 9),
    st.integers(0, 6),
    st.one_of(st.none(), st.floats(0, 1)),
    st.integers(0, 400),
)
CROWDED_POLICY = Policy(
    session=POLICY.session, partition=PartitionPolicy(open_sessions=4, closed_sessions=3, open_apps=1)
)


@settings(max_examples=150, deadline=None)
@given(st.lists(CROWDED, max_size=80), st.lists(st.integers(1, 10), min_size=1))
def test_bounds_act_alike_wherever_the_partition_is_recovered(
    events: list[tuple[str, int, int, float | None, int]], cuts: list[int]
) -> None:
    """What is closed, evicted and forgotten, one per record, follows from the state alone, not from who folded it."""
    log = arrivals(events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("models.partition.sessions.MAX_TIMEOUTS_PER_RECORD", 1)
        patch.setattr("models.partition.app_windows.MAX_CLOSINGS_PER_RECORD", 1)
        whole: Entities = {}
        whole_outputs: dict[str, bytes] = {}
        fold = PartitionFold(whole, CROWDED_POLICY)
        apply(whole, fold, log, whole_outputs)

        cut: Entities = {}
        cut_outputs: dict[str, bytes] = {}
        position, step = 0, 0
        while position < len(log):
            size = cuts[step % len(cuts)]
            apply(cut, PartitionFold(cut, CROWDED_POLICY), log[position : position + size], cut_outputs)
            position, step = position + size, step + 1

    assert cut == whole
    assert cut_outputs == whole_outputs
    # One record can end, and one can reopen, a session after the bound was looked at.
    assert fold.open_sessions <= 5
