"""Layers 1 and 2 as a fold keeps them, with fixed times."""

from __future__ import annotations

from datetime import timedelta

import pytest

from models.events import EpisodeClosed, SegmentSummarised
from tests.support.fields import assert_fields
from tests.support.session_driver import NOON, Session


def summarised(first: int, summary: str) -> SegmentSummarised:
    """What a summariser made of five turns."""
    at = NOON + timedelta(minutes=6)
    return SegmentSummarised(
        session_id="s", timestamp=at, first_turn=first, last_turn=first + 4, summary=summary, summarised_by="model-x"
    )


def test_segments_have_both_ends_inside() -> None:
    """Fifteen turns in order are (0, 4), (5, 9), (10, 14)."""
    session = Session()
    for turn in range(15):
        session.say(turn, risk=0.1 if turn < 10 else 0.3)

    assert [(0, 4), (5, 9), (10, 14)] == [(s.first_turn, s.last_turn) for s in session.segments]
    assert pytest.approx(0.3) == session.segments[2].risk_mean
    assert_fields(session.segments[2], summarised_by="extractive", tokens_before=30, bytes_before=105)


def test_a_better_summary_replaces_the_segment() -> None:
    """While the segment is remembered a summariser's text takes its place, and the episode is made of it."""
    session = Session()
    for turn in range(5):
        session.say(turn)
    session.put(summarised(0, "They talk about new sails for a wooden boat."))
    session.put(summarised(5, "Unknown segment."))
    session.end()
    first, second = session.segments

    assert_fields(second, turns=first.turns, summarised_by="model-x", tokens_after=11, bytes_after=44)
    assert first.id != second.id
    (episode,) = (output for output in session.outputs if isinstance(output, EpisodeClosed))
    assert "They talk about new sails for a wooden boat." == episode.summary


def test_working_memory_forgets_beyond_fifty_turns() -> None:
    """A summary for a segment that has left the working memory is ignored."""
    session = Session()
    for turn in range(55):
        session.say(turn)
    already = len(session.outputs)
    session.put(summarised(0, "Too late."))

    assert [] == session.outputs[already:]
