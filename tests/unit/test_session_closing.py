"""How a session ends, times out, is remembered and comes back, with fixed times."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from models import events
from models.errors import RecoveryFailed
from models.session.fold import SessionState, read_due
from models.wire.arrival import SessionTimedOut
from tests.support.fields import assert_fields
from tests.support.session_driver import NOON, Session


def test_closing_emits_everything_in_order() -> None:
    """Windows, segment, topic, episode, conversation, the alert's end, last profile; marker, topics and notes stay."""
    session = Session()
    for turn in range(7):
        session.say(turn, risk=0.95)
    already = len(session.outputs)
    session.store()
    session.end(minute=7)
    kinds = list(dict.fromkeys(type(output) for output in session.outputs[already:]))
    session.store()

    assert [
        events.WindowClosed,
        events.SegmentCompacted,
        events.TopicChanged,
        events.EpisodeClosed,
        events.ConversationEnded,
        events.AlertChanged,
        events.ProfileUpdated,
    ] == kinds
    assert (False, [5, 6]) == (session.profile.open, session.segments[-1].turns)
    assert {"head", "n", "ti", "t0", *(f"tm0.{turn}" for turn in range(7))} == set(session.stored)
    (episode,) = (output for output in session.outputs if isinstance(output, events.EpisodeClosed))
    assert_fields(episode, reason="bye", first_turn=0, last_turn=6, turn_count=7, peak_risk=0.95, alerts=1)


def test_time_out_closes_and_is_told_by_its_deadline() -> None:
    """An outdated deadline does nothing; the right one closes; its repeat does nothing."""
    session = Session()
    session.say(0)
    outdated = session.deadline
    session.say(1)
    session.store()
    due = session.deadline
    already = len(session.outputs)
    session.put(SessionTimedOut("s", outdated))
    nothing = len(session.outputs)
    session.put(SessionTimedOut("s", due))
    closed = session.outputs[already:]
    session.put(SessionTimedOut("s", due))

    assert (already, closed) == (nothing, session.outputs[already:])
    assert ["timed_out"] == [output.reason for output in closed if isinstance(output, events.EpisodeClosed)]
    assert {due} == {output.timestamp for output in closed if isinstance(output, events.Output)}
    assert due + timedelta(days=1) == session.deadline


def test_turn_that_causes_its_own_time_out_is_still_folded() -> None:
    """The record that moves the watermark past the deadline closes the session and then opens it again."""
    session = Session()
    session.say(0)
    due = session.deadline
    session.put(SessionTimedOut("s", due))
    session.offset -= 1
    session.say(90, risk=0.95)
    ids = [output.id for output in session.outputs]

    assert ("raised", len(ids)) == (session.alerts[-1].cause, len(set(ids)))
    assert (1, 90) == (session.profile.turn_count, session.profile.last_turn)


def test_late_turn_after_the_end_and_reopening() -> None:
    """Up to the last number it is late; a higher one opens a fresh profile that continues the numbering."""
    session = Session()
    for turn in range(6):
        session.say(turn, risk=0.4)
    session.end(minute=8)
    closed = len(session.outputs)
    session.say(3)
    session.store()
    assert closed == len(session.outputs)
    session.say(6, risk=0.2, timestamp=(NOON + timedelta(minutes=20)).isoformat())
    session.say(4)
    session.end()

    assert_fields(session.profile, turn_count=1, last_turn=6, late_turns=1, peak_risk=0.2)


@pytest.mark.parametrize("head", [msgspec.msgpack.encode([99, False, None]), b"\xc1", b""])
def test_foreign_state_is_refused(head: bytes) -> None:
    """Another version or damage is an error that says what to do, never a misreading."""
    with pytest.raises(RecoveryFailed, match="replay the turns"):
        read_due(head)
    with pytest.raises(RecoveryFailed, match="head"):
        SessionState.load({"head": head})


@pytest.mark.parametrize("restart", [False, True])
def test_forgotten_session_begins_anew(restart: bool) -> None:
    """Once the marker is gone, any number opens the session, whether or not the worker restarted in between."""
    session = Session()
    session.say(5)
    session.end()
    session.put(SessionTimedOut("s", session.deadline))
    if restart:
        session.store()
    session.say(0, risk=0.95)

    assert (1, 0, "raised") == (session.profile.turn_count, session.profile.late_turns, session.alerts[-1].cause)
