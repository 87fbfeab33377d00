"""Counting what kills left behind, the keyed fold of the contenders, and when they are killed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from aiokafka.structs import ConsumerRecord

from jobs.lab.bench.contender import EventFold
from jobs.lab.bench.folds import TurnTraffic, record_of
from jobs.lab.bench.kills import KILL_AFTER_S, count_alerts, count_turns, kill_moments_s
from models.events import AlertChanged, Harm, OutputEvent, Position, ProfileUpdated, Role, SessionEnded, Turn
from models.partition.sessions import DecodedArrival
from models.wire.codec import encode
from streams.settings import load_settings
from tests.support.session_driver import NOON, Session, said

TOPIC = "turns"


def conversation(session_id: str = "s", turns: int = 12) -> list[OutputEvent]:
    """Outputs of a session that escalates and ends."""
    session = Session()
    for number in range(turns):
        session.say(number, risk=min(1.0, number / 10), session_id=session_id)
    ended = SessionEnded(session_id=session_id, timestamp=NOON + timedelta(hours=1))
    session.put(ended)
    return list(session.outputs)


def closing(events: list[OutputEvent], **changed: int) -> list[OutputEvent]:
    """The same outputs, with other numbers in the closing profile."""
    return [
        msgspec.structs.replace(event, **changed) if isinstance(event, ProfileUpdated) and not event.open else event
        for event in events
    ]


def test_nothing_lost_is_nothing_counted() -> None:
    """The oracle's own outputs, some of them twice, differ in nothing but repeats of the same id."""
    events = conversation()
    alerts = [event for event in events if isinstance(event, AlertChanged)]

    assert alerts
    assert count_turns(events, [*events, *events]) == {"lost": 0, "doubled": 0}
    assert list(count_alerts(events, [*events, *alerts]).values()) == [0, 0, len(alerts), 0]


def test_lost_turns_are_counted_by_session() -> None:
    """Each session's own difference; what never came is lost; of closing profiles the last counts."""
    expected = [*conversation("a"), *conversation("b")]
    found = [*closing(conversation("a"), turn_count=9), *closing(conversation("b"), duplicate_turns=4)]

    assert count_turns(expected, found) == {"lost": 3, "doubled": 4}

    expected = conversation()
    found = [event for event in expected if not isinstance(event, ProfileUpdated) or event.open]

    assert count_turns(expected, found) == {"lost": 12, "doubled": 0}

    assert count_turns(expected, [*closing(expected, turn_count=10), *expected]) == {"lost": 0, "doubled": 0}


def test_alerts_missing_false_and_repeated_under_another_id() -> None:
    """An alert is what it says; its id only tells whether a reader can recognise a repeat."""
    expected = conversation()
    first, *others = [event for event in expected if isinstance(event, AlertChanged)]
    other_id = msgspec.structs.replace(first, id="another")
    made_up = msgspec.structs.replace(first, turn=99, id="made up")

    assert others
    assert list(count_alerts(expected, others).values()) == [1, 0, 0, 0]
    assert list(count_alerts(expected, [first, other_id, *others]).values()) == [0, 0, 0, 1]
    assert list(count_alerts(expected, [first, *others, made_up]).values()) == [0, 1, 0, 0]


@pytest.fixture
def arrivals(tmp_path: Path) -> list[DecodedArrival]:
    """One session's turns as the contenders decode them."""
    turns = [turn for turn in TurnTraffic(2).backlog(1_000, ends_at=datetime.now(UTC)) if turn.session_id == "bench-1"]
    fold = EventFold(load_settings(data_dir=tmp_path))
    return fold.arrivals([record(offset, turn) for offset, turn in enumerate(turns)])


def record(offset: int, turn: Turn) -> ConsumerRecord:
    """The turn at a place of partition 0."""
    return record_of(TOPIC, offset, int(turn.timestamp.timestamp() * 1000), turn.session_id.encode(), encode(turn))


@pytest.mark.parametrize(("guarded", "duplicates"), [(True, 0), (False, 3)])
def test_what_comes_again_is_folded_again_without_the_guard(
    tmp_path: Path, arrivals: list[DecodedArrival], *, guarded: bool, duplicates: int
) -> None:
    """The contenders' fold shows what their framework lets through; the role's own guard would hide it."""
    fold = EventFold(load_settings(data_dir=tmp_path), name="any_guarded" if guarded else "any")
    parts: dict[str, bytes] = {}
    for arrival in [*arrivals[:6], *arrivals[3:6], *arrivals[6:]]:
        parts = fold.fold(arrival, parts).parts
    ended = SessionEnded(session_id="bench-1", timestamp=datetime.now(UTC))
    outputs = fold.fold(DecodedArrival(ended, Position(TOPIC, 0, len(arrivals)), NOON), parts).outputs

    assert [event.duplicate_turns for event in outputs if isinstance(event, ProfileUpdated)] == [duplicates]


def test_a_fold_that_starts_anew_from_stored_parts_goes_on_as_before(
    tmp_path: Path, arrivals: list[DecodedArrival]
) -> None:
    """What the store holds is all that is needed: a killed contender loses nothing by its fold."""
    settings = load_settings(data_dir=tmp_path)
    through, before = EventFold(settings), EventFold(settings)
    parts: dict[str, bytes] = {}
    stored: dict[str, bytes] = {}
    for arrival in arrivals:
        parts = through.fold(arrival, parts).parts
    for number, arrival in enumerate(arrivals):
        folded = (before if number < 5 else EventFold(settings)).fold(arrival, stored)
        changed = {name: value for name, value in folded.changed.items() if value is not None}
        stored = {name: value for name, value in stored.items() if name not in folded.changed} | changed

    assert len(arrivals) > 5
    assert stored == parts


def test_a_contender_tells_of_which_kind_an_alert_is(tmp_path: Path) -> None:
    """As the role does: its fold is given all that the batch stages added."""
    fold = EventFold(load_settings(data_dir=tmp_path))
    turn = msgspec.structs.replace(said(0, "Words.", role=Role.USER), risk=0.95)
    harms = tuple(100 if harm is Harm.FRAUD else 0 for harm in Harm)
    outputs = fold.fold(DecodedArrival(turn, Position(TOPIC, 0, 0), NOON, 0.95, harms=harms), {}).outputs

    assert [Harm.FRAUD] == [event.category for event in outputs if isinstance(event, AlertChanged)]


def test_moments_follow_the_seed_and_fall_among_the_steady_turns() -> None:
    """All contenders of a run are killed at the same moments; another seed has others."""
    moments = kill_moments_s(7, 30)

    assert moments == kill_moments_s(7, 30) != kill_moments_s(8, 30)
    assert all(KILL_AFTER_S[0] <= moment <= KILL_AFTER_S[1] for moment in moments)
