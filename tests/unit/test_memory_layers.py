"""The memory layers by themselves and as a fold keeps them: buffer, working memory, recent vectors, parts."""

from datetime import timedelta

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from models.events import EpisodeClosed, RequestedTurn, Role, SegmentRequested, SegmentSummarised
from models.policy import MemoryPolicy, Policy
from models.state.buffer import BufferedTurn, TurnBuffer, encode_turn
from models.state.parts import Parts
from models.state.vectors import VectorRing, quantise
from tests.support.fields import assert_fields
from tests.support.session_driver import NOON, Session


def said(turn: int, content: str = "The boat needs new sails.", risk: float | None = None) -> BufferedTurn:
    """A turn, one minute after the one before."""
    return BufferedTurn(turn, Role.USER, content, NOON + timedelta(minutes=turn), risk)


def unit(*values: float) -> NDArray[np.float32]:
    """A quantised vector."""
    quantised = quantise(np.array(values, dtype=np.float32))
    assert quantised is not None
    return quantised


def test_parts_report_everything_touched() -> None:
    """Also what ended as it began: a replaced worker may have stored what lay between. What never was is left alone."""
    loaded = {"a": b"1", "b": b"2", "d": b"4"}
    parts = Parts(loaded)
    parts.put("a", b"9")
    parts.put("a", b"1")
    parts.put("c", b"3")
    parts.put("passing", b"5")
    parts.drop("passing")
    parts.drop("b")
    parts.drop("never")

    assert {"a": b"1", "c": b"3", "b": None, "passing": None} == parts.changes()
    assert loaded == {"a": b"1", "b": b"2", "d": b"4"}


def put(buffer: TurnBuffer, turn: BufferedTurn, open_turns: list[int]) -> None:
    """Insert a turn into a buffer of ten."""
    buffer.insert(turn.turn, encode_turn(turn), 10, open_turns)


@pytest.mark.behaviour("risk-01", "risk-25")
def test_buffer_keeps_the_last_turns_exactly() -> None:
    """Ten turns, one part each, oldest first."""
    buffer = TurnBuffer({}, Parts({}))
    for turn in range(25):
        put(buffer, said(turn, f"text {turn}"), [])

    assert [f"text {n}" for n in range(15, 25)] == [buffer.read(n).content for n in sorted(buffer.slots)]
    assert set(range(10)) == set(buffer.slots.values())


def test_buffer_holds_open_turns_beyond_its_size() -> None:
    """A late turn whose segment is open is kept until that is compacted; then its part is deleted."""
    parts = Parts({})
    buffer = TurnBuffer({}, parts)
    for turn in range(100, 112):
        put(buffer, said(turn), [])
    put(buffer, said(50), [50])
    held = sorted(buffer.slots)
    put(buffer, said(112), [])

    assert [50, *range(102, 112)] == held
    assert (list(range(103, 113)), 10) == (sorted(buffer.slots), sum(v is not None for v in parts.changes().values()))


def test_quantised_cosine_is_close() -> None:
    """Int8 keeps the cosine of 64 dimensions to a hundredth."""
    rng = np.random.default_rng(7)
    ring = VectorRing(Parts({}), 32)
    vectors = rng.normal(size=(20, 64)).astype(np.float32)
    for turn, vector in enumerate(vectors[:-1]):
        ring.remember(turn, 0, unit(*vector))
    exact = vectors[:-1] @ vectors[-1] / np.linalg.norm(vectors[:-1], axis=1) / np.linalg.norm(vectors[-1])

    assert np.allclose(exact, ring.cosines(unit(*vectors[-1])), atol=0.01)


def summarised(first: int, summary: str) -> SegmentSummarised:
    """What a summariser made of five turns."""
    at = NOON + timedelta(minutes=6)
    return SegmentSummarised(
        session_id="s", timestamp=at, first_turn=first, last_turn=first + 4, summary=summary, summarised_by="model-x"
    )


@pytest.mark.behaviour("risk-03", "risk-04")
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


@pytest.mark.behaviour("risk-05")
def test_a_slower_summariser_is_asked_for_every_full_segment() -> None:
    """While the session is open; an answer for turns of another session that had its id and its range is not taken."""
    session = Session(Policy(memory=MemoryPolicy(ask=True, asked_chars=100)))
    for turn in range(7):
        session.say(turn, "The boat needs sails. " * 10)
    (asked,) = session.of(SegmentRequested)
    answer = summarised(0, "They talk about sails.")
    for ended_at in (NOON, asked.ended_at):
        session.put(structs.replace(answer, ended_at=ended_at))
    session.end()

    assert_fields(asked, first_turn=0, last_turn=4, ended_at=NOON + timedelta(minutes=4))
    assert asked.turns == [RequestedTurn(Role.USER, ("The boat needs sails. " * 10)[:100])] * 5
    assert [each.summarised_by for each in session.segments] == ["extractive", "model-x", "extractive"]
    assert [asked] == session.of(SegmentRequested)


@pytest.mark.behaviour("risk-03", "risk-25")
def test_working_memory_forgets_beyond_fifty_turns() -> None:
    """A summary for a segment that has left the working memory is ignored."""
    session = Session()
    for turn in range(55):
        session.say(turn)
    already = len(session.outputs)
    session.put(summarised(0, "Too late."))

    assert [] == session.outputs[already:]
