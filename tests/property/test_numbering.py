"""Numbers that the fold gives: those of the log's order, whatever comes again, is numbered already, or cuts the log."""

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from models.events import AnyTurn, InputEvent, Position, SessionEnded, Turn, TurnNumbered
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import PartitionPolicy, Policy, SessionPolicy
from models.session.messages import KNOWN_MESSAGES
from models.wire.codec import decode_input, encode
from tests.support.entity_driver import Entities, keep_entities
from tests.support.session_driver import said, unnumbered

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
POLICY = Policy(session=SessionPolicy(timeout=timedelta(minutes=5), closed_retention=timedelta(minutes=20)))
HOURS = 3_600

Said = tuple[str, int, int, int]
"""What it is, of which session (in which app), number or message, seconds since the one before."""
_SAID = st.tuples(
    st.sampled_from([*["unnumbered"] * 6, *["numbered"] * 2, "nameless", "ended"]),
    st.integers(0, 3),
    st.integers(0, 9),
    st.sampled_from([1, 30, 400, HOURS]),
)


def log_of(events: Sequence[Said]) -> list[DecodedArrival]:
    """The log, as a consumer decodes it: two apps with the same ids of sessions and messages."""
    now, log = START, []
    for offset, (kind, session, number, seconds) in enumerate(events):
        now += timedelta(seconds=seconds)
        names: dict[str, Any] = {"session_id": f"s{session // 2}", "app_id": f"a{session % 2}", "timestamp": now}
        event: InputEvent
        if kind == "ended":
            event = SessionEnded(**names)
        else:
            message = None if kind == "nameless" else f"m{number}"
            event = said(number, f"Said at {offset}.", message_id=message, **names)
            event = event if kind == "numbered" else unnumbered(event)
        decoded = decode_input(encode(event), event.session_id.encode(), now, POLICY.intake)
        log.append(DecodedArrival(decoded, Position("t", 0, offset), now))
    return log


def fold(
    log: Sequence[DecodedArrival], cuts: Sequence[int], policy: Policy = POLICY
) -> tuple[Entities, list[TurnNumbered]]:
    """Fold in batches of these sizes, each by a new worker that reads the state, and the record before once more."""
    entities: Entities = {}
    told: dict[str, TurnNumbered] = {}
    at = step = 0
    while at < len(log):
        size = cuts[step % len(cuts)]
        for folded in PartitionFold(entities, policy).fold(log[max(0, at - 1) : at + size]):
            told |= {event.id: event for event in folded.outputs if isinstance(event, TurnNumbered)}
            keep_entities(entities, folded.changed)
        at, step = at + size, step + 1
    return entities, list(told.values())


def session_of(turn: AnyTurn | TurnNumbered) -> tuple[str, str]:
    """App and id."""
    return turn.app_id, turn.session_id


@given(st.lists(_SAID, max_size=60), st.lists(st.integers(1, 20), min_size=1, max_size=3))
def test_numbers_are_of_the_logs_order(events: list[Said], cuts: list[int]) -> None:
    """Each message is told once, above every number that its session had, of whichever app; cuts change nothing."""
    log = log_of(events)
    entities, told = fold(log, cuts)

    assert (entities, told) == fold(log, [len(log) or 1])
    had: dict[tuple[str, str], int] = {}
    known: dict[tuple[str, str], set[str]] = {}
    numbered = {event.source.offset: event for event in told}
    for arrival in log:
        turn = arrival.event
        if not isinstance(turn, AnyTurn):
            continue
        name = session_of(turn)
        if isinstance(turn, Turn):
            had[name] = max(had.get(name, -1), turn.turn)
        elif (event := numbered.get(arrival.position.offset)) is None:
            assert turn.message_id in known[name]
        else:
            assert event.said == turn.numbered(event.turn)
            assert event.turn > had.get(name, -1)
            had[name] = event.turn
        if turn.message_id is not None:
            known.setdefault(name, set()).add(turn.message_id)


@given(st.integers(1, 3 * KNOWN_MESSAGES), st.data())
def test_the_last_messages_are_known_and_no_others(count: int, data: st.DataObject) -> None:
    """Exactly so many, in a state that does not grow, and of which a turn writes little."""
    entities: Entities = {}
    worker, last = PartitionFold(entities, POLICY), deque[str](maxlen=KNOWN_MESSAGES)
    offset, written = 0, 0

    def numbers_of(message: str) -> list[int]:
        nonlocal offset, written
        names: dict[str, Any] = {"session_id": "s", "timestamp": START + timedelta(seconds=offset)}
        turn = unnumbered(said(0, "", message_id=message, **names))
        told = []
        for folded in worker.fold([DecodedArrival(turn, Position("t", 0, offset), START)]):
            told += [event.turn for event in folded.outputs if isinstance(event, TurnNumbered)]
            parts = [value for part in folded.changed.values() for key, value in part.items() if key.startswith("m")]
            written = max(written, sum(len(value or b"") for value in parts))
            keep_entities(entities, folded.changed)
        offset += 1
        return told

    for n in range(count):
        assert numbers_of(f"m{n}") == [n]
        last.append(f"m{n}")
    asked = data.draw(st.integers(0, count - 1))

    assert numbers_of(f"m{asked}") == ([] if f"m{asked}" in last else [count])
    (parts,) = [held for key, held in entities.items() if key.startswith("session:")]
    assert sum(len(value) for key, value in parts.items() if key.startswith("m")) == 8 * min(count, KNOWN_MESSAGES)
    assert written <= 128


def test_a_session_that_was_forgotten_counts_on() -> None:
    """No number comes again: the archive has what was said under it. Nothing of a session's name is kept for that."""
    few = Policy(session=POLICY.session, partition=PartitionPolicy(closed_sessions=0))
    spoken = [("unnumbered", 0, n, 1) for n in range(7)]
    entities, told = fold(
        log_of([*spoken, ("ended", 0, 0, 1), ("nameless", 1, 0, HOURS), ("nameless", 0, 0, 1)]), [3], few
    )
    numbers = [event.turn for event in told if event.app_id == "a0"]

    assert all(before < after for before, after in pairwise(numbers))
    assert sum(map(len, entities[""].values())) < 200
