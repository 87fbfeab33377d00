"""What is kept of a long session: an episode that speaks for all of it, and topic summaries that keep what was said."""

from __future__ import annotations

from itertools import pairwise

import pytest

from models.events import ConversationEnded, EpisodeClosed, Role
from models.policy import MemoryPolicy, Policy
from models.session.topics.compaction import SENTENCE_CHARS
from tests.support.data_files import data_file
from tests.support.session_driver import Session
from tests.support.topic_driver import Talk

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
