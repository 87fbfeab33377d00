"""How a session ends, times out, is remembered and comes back; what is kept of a long one."""

from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest

from models import events
from models.errors import RecoveryFailed
from models.events import ConversationEnded, EpisodeClosed, Role
from models.policy import MemoryPolicy, Policy
from models.session.fold import SessionState, read_due
from models.session.topics.compaction import SENTENCE_CHARS
from models.wire.arrival import SessionTimedOut
from tests.support.data_files import data_file
from tests.support.fields import assert_fields
from tests.support.session_driver import NOON, Session
from tests.support.topic_driver import Talk


@pytest.mark.behaviour("risk-26", "card-04")
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
        events.TopicsKept,
        events.EpisodeClosed,
        events.ConversationEnded,
        events.AlertChanged,
        events.ProfileUpdated,
    ] == kinds
    assert (False, [5, 6]) == (session.profile.open, session.segments[-1].turns)
    assert {"head", "n", "ti", "t0", *(f"tm0.{turn}" for turn in range(7))} == set(session.stored)
    (episode,) = (output for output in session.outputs if isinstance(output, events.EpisodeClosed))
    assert_fields(episode, reason="bye", first_turn=0, last_turn=6, turn_count=7, peak_risk=0.95, alerts=1)


@pytest.mark.behaviour("risk-26")
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


TOLD = data_file("long_sessions")
ACKNOWLEDGED = "Noted for the boat."


def long_session(policy: Policy | None = None, turns: int = 200) -> Session:
    """A session of five subjects, one in each fifth, with small talk between; each turn is stored."""
    session = Session(policy or Policy())
    subjects = list(TOLD["subjects"].values())
    each = turns // len(subjects)
    for turn in range(turns):
        said = subjects[turn // each]
        content = TOLD["small_talk"][turn % len(TOLD["small_talk"])] if turn % 2 else said[turn // 2 % len(said)]
        session.say(turn, content, role=Role.ASSISTANT if turn % 2 else Role.USER)
        session.store()
    return session


@pytest.mark.behaviour("risk-27")
def test_an_episode_speaks_for_each_fifth_of_its_session() -> None:
    """Of 200 turns, and in the order in which they were said; the app's memory is offered the same summary."""
    session = long_session()
    session.end(minute=300)
    (episode,), (ended,) = session.of(EpisodeClosed), session.of(ConversationEnded)
    places = [episode.summary.lower().find(subject) for subject in TOLD["subjects"]]

    assert -1 not in places, episode.summary
    assert places == sorted(places)
    assert episode.summary == ended.summary


@pytest.mark.parametrize("turns", [200, 1_000])
def test_what_is_kept_of_segments_that_left_is_bounded(turns: int) -> None:
    """As many lines as the policy says, spread over the whole session; closed, none is left."""
    policy = Policy(memory=MemoryPolicy(past_segments=8))
    session = long_session(policy, turns)
    assert session.state is not None
    lines = session.state.past_segments.all()
    gaps = [after.first_turn - before.first_turn for before, after in pairwise(lines)]

    assert len(lines) == session.state.parts.count("l") == 8
    assert max(gaps) <= 2 * (turns - policy.memory.working_turns) / 8
    session.end(minute=2_000)
    assert session.state.parts.count("l") == 0


@pytest.mark.behaviour("topic-07")
@pytest.mark.parametrize(("opener", "fewest"), [("", 18), ("You should know that ", 12)])
def test_a_topic_s_summary_keeps_the_facts_that_were_said(opener: str, fewest: int) -> None:
    """Of 18 facts, each acknowledged, all that have room; the summary is no longer than its sentences may be."""
    talk = Talk()
    facts = TOLD["boat"]
    for said in facts:
        talk.ask(0, opener + said["says"])
        talk.answer(ACKNOWLEDGED)
    for _ in range(6):
        talk.ask(0, "And what else does the boat need?")
        talk.answer(ACKNOWLEDGED)
    summary = talk.caused("compacted")[-1].summary or ""
    found = [each["word"] for each in facts if each["word"] in summary]

    assert len(facts) == 18
    assert len(found) >= fewest, summary
    assert len(summary) <= 3 * (SENTENCE_CHARS + 1)
