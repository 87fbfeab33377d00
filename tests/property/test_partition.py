"""How a log is cut into batches, and where a crash falls, changes nothing about what comes out."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.events import AlertTriaged, ClockTicked, InputEvent, Mode, Position, Role, SessionEnded, SessionErased
from models.events.ids import named_id
from models.partition.log_fold import PARTITION_ENTITY
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import PartitionPolicy, Policy, SessionPolicy
from models.session.fold import SessionState
from models.session.state import Open
from models.wire.codec import encode
from tests.support.entity_driver import Entities, keep_entities
from tests.support.session_driver import said

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
POLICY = Policy(session=SessionPolicy(timeout=timedelta(minutes=5), closed_retention=timedelta(minutes=20)))

Event = tuple[str, int, int, float | None, int]


def events_of(sessions: int, turns: int, most: int) -> st.SearchStrategy[list[Event]]:
    """Kind, session, turn, risk and seconds since the event before."""
    kinds = st.sampled_from([*["turn"] * 6, "ended", "tick", "erased", "snoozed"])
    risk = st.one_of(st.none(), st.floats(0, 1))
    event = st.tuples(kinds, st.integers(0, sessions), st.integers(0, turns), risk, st.integers(0, 400))
    return st.lists(event, max_size=most)


def arrivals(events: Sequence[Event]) -> list[DecodedArrival]:
    """A log: each event's time a little after, or long after, the one before."""
    now, log = START, []
    for offset, (kind, session, turn, risk, seconds) in enumerate(events):
        now += timedelta(seconds=seconds if seconds < 380 else 3600)
        session_id = f"s{session}"
        event: InputEvent
        match kind:
            case "turn":
                role = Role.USER if turn % 2 == 0 else Role.ASSISTANT
                app, content = f"a{session % 2}", f"What is the limit of number {turn}?"
                event = said(turn, content, session_id=session_id, app_id=app, role=role, timestamp=now, risk=risk)
            case "ended":
                event = SessionEnded(session_id=session_id, timestamp=now)
            case "snoozed":
                alert_id = named_id("alert", session_id, "t", "0", str(turn))
                until = now + timedelta(seconds=(risk or 0) * 400)
                event = AlertTriaged(session_id=session_id, timestamp=now, alert_id=alert_id, snoozed_until=until)
            case "erased":
                event = SessionErased(session_id=session_id, timestamp=now, request_id="r")
            case _:
                event = ClockTicked(session_id="clock-0", timestamp=now)
        log.append(DecodedArrival(event, Position("t", 0, offset), now, 0.1))
    return log


def modes_in(entities: Entities) -> dict[Mode, int]:
    """Open sessions by mode, by decoding every session."""
    heads = [SessionState.load(parts).head for key, parts in entities.items() if key != PARTITION_ENTITY]
    return dict.fromkeys(Mode, 0) | Counter(head.mode for head in heads if isinstance(head, Open))


def fold_and_keep(
    log: Sequence[DecodedArrival], policy: Policy, cuts: Sequence[int], rewinds: Sequence[int] = (0,)
) -> tuple[Entities, dict[str, bytes], PartitionFold]:
    """Fold and keep in batches of these sizes, each by a fresh fold from some records before it, as the role does.

    A repeated id must say the same, and what is shown of the state is what it holds, for a worker that takes over too.
    """
    entities: Entities = {}
    outputs: dict[str, bytes] = {}
    fold = PartitionFold(entities, policy)
    position, step = 0, 0
    while position < len(log):
        size, rewind = cuts[step % len(cuts)], rewinds[step % len(rewinds)]
        fold = PartitionFold(entities, policy)
        for folded in fold.fold(log[max(0, position - rewind) : position + size]):
            for event in folded.outputs:
                assert outputs.setdefault(event.id, encode(event)) == encode(event)
            keep_entities(entities, folded.changed)
        assert modes_in(entities) == fold.open_by_mode == PartitionFold(entities, policy).open_by_mode
        position, step = position + size, step + 1
    return entities, outputs, fold


@given(events_of(3, 30, 60), st.lists(st.integers(1, 10), min_size=1), st.lists(st.integers(0, 8), min_size=1))
def test_batches_and_crashes_change_nothing(events: list[Event], cuts: list[int], rewinds: list[int]) -> None:
    """One call over the whole log equals many calls with a fresh fold and repeated records each time."""
    log = arrivals(events)

    assert fold_and_keep(log, POLICY, [len(log) or 1])[:2] == fold_and_keep(log, POLICY, cuts, rewinds)[:2]


CROWDED_POLICY = Policy(
    session=POLICY.session, partition=PartitionPolicy(open_sessions=4, closed_sessions=3, open_apps=1)
)


@given(events_of(9, 6, 80), st.lists(st.integers(1, 10), min_size=1))
def test_bounds_act_alike_wherever_the_partition_is_recovered(events: list[Event], cuts: list[int]) -> None:
    """What is closed, evicted and forgotten, one per record, follows from the state alone, not from who folded it."""
    log = arrivals(events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("models.partition.sessions.MAX_TIMEOUTS_PER_RECORD", 1)
        patch.setattr("models.partition.app_windows.MAX_CLOSINGS_PER_RECORD", 1)
        *whole, fold = fold_and_keep(log, CROWDED_POLICY, [len(log) or 1])
        *cut, _ = fold_and_keep(log, CROWDED_POLICY, cuts)

    assert whole == cut
    # One record can end, and one can reopen, a session after the bound was looked at.
    assert fold.open_sessions <= 5
