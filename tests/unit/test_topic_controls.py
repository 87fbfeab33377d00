"""What users and callers say of topics: importance, tags and feedback."""

from datetime import timedelta

import msgspec
import pytest

from models.events import (
    FeedbackGiven,
    RestoredMessage,
    Role,
    TopicAdjusted,
    TopicRestored,
    TopicSummarised,
    TopicSummaryRequested,
)
from tests.support.fields import assert_fields
from tests.support.session_driver import NOON
from tests.support.topic_driver import Talk, matter, when

IMPORTANCE = "importance"
HEAD = {"session_id": "s", "timestamp": NOON}


def feedback(talk: Talk, value: float, **fields: object) -> None:
    """A thumb up or down."""
    talk.put(msgspec.convert(HEAD | {"value": value} | fields, FeedbackGiven))


def two_topics(turn: int = 0) -> tuple[Talk, str, str]:
    """A session of two topics, and their ids; the second is active."""
    talk = Talk(importance=0.5)
    first = talk.ask(0, "first", turn=turn)[-1].topic_id
    second = talk.ask(1, "second")[-1].topic_id
    return talk, first, second


@pytest.mark.behaviour("topic-28")
def test_importance_and_tags_of_a_named_topic() -> None:
    """Both are told; the active topic stays the active one, and rating is no access."""
    talk, first, _ = two_topics()
    talk.put(msgspec.convert(HEAD | {"topic_id": first, "importance": 0.9, "tags": ["ship", "storm"]}, TopicAdjusted))
    change = talk.changes[-1]

    assert_fields(
        change, cause="adjusted", topic_id=first, importance=0.9, tags=["ship", "storm"], active=False, access_count=0
    )
    assert ("second", NOON + timedelta(minutes=1)) == (talk.active.title, change.last_active_at)


@pytest.mark.behaviour("topic-27")
@pytest.mark.parametrize(("value", "expected"), [(1, 0.6), (0.5, 0.55), (0, 0.5), (-0.5, 0.45), (-1, 0.4)])
def test_feedback_moves_importance_by_the_rule(value: float, expected: float) -> None:
    """`i += rate * |value| * (target - i)`: from 0.5 at a rate of 0.2."""
    talk, _, _ = two_topics()
    feedback(talk, value)

    assert "learnt" == talk.changes[-1].cause
    assert expected == pytest.approx(talk.changes[-1].importance)


def test_feedback_reaches_the_topic_of_a_turn() -> None:
    """At hand, packed, or unpacked again."""
    talk = Talk()
    talk.discuss(0, 14)
    talk.ask(1, "second")
    told = []
    for turn in (13, 2, 14):
        feedback(talk, 1, turn=turn)
        told.append(talk.changes[-1].title)
    talk.ask(0)
    talk.ask(1)
    feedback(talk, 1, turn=2)

    assert (["Message 0 of it.", "Message 0 of it.", "second"], "Message 0 of it.") == (told, talk.changes[-1].title)


@pytest.mark.behaviour("topic-17")
@pytest.mark.parametrize(("said", "expected"), [(0.9, 0.9), (0, 0.0), (1, 1.0), (1e-9, 1e-9)])
def test_importance_in_metadata(said: float, expected: float) -> None:
    """The caller's word with a message, of any role, at any time."""
    asked, answered = Talk(), Talk()
    asked.ask(0, metadata={IMPORTANCE: said})
    answered.ask(0)
    answered.answer(metadata={IMPORTANCE: said, "other": "thing"})

    assert (expected, expected) == (asked.active.importance, answered.active.importance)


@pytest.mark.behaviour("topic-06")
def test_slower_summary_takes_the_place_of_the_extractive_one() -> None:
    """It is cut to its bound, told with who wrote it, and updated by the next compaction; nothing without a summary."""
    talk = Talk()
    talk.ask(0)
    early = TopicSummarised(
        session_id="s", timestamp=NOON, topic_id=talk.active.topic_id, summary="Too early.", summarised_by="model"
    )
    told = len(talk.changes)
    talk.put(early)

    assert told == len(talk.changes)

    talk.discuss(0, 13)
    talk.put(msgspec.structs.replace(early, summary="The harbour pilot waits. " * 100))
    talk.store()
    change = talk.changes[-1]

    assert ("summarised", "model") == (change.cause, change.summarised_by)
    assert change.summary is not None
    assert change.summary.startswith("The harbour pilot waits.")
    assert len(change.summary) <= 3 * 281

    talk.discuss(0, 9)
    compacted = talk.changes[-1]

    assert ("compacted", "extractive") == (compacted.cause, compacted.summarised_by)
    assert "harbour pilot" in (compacted.summary or "")


def kept(messages: int) -> list[RestoredMessage]:
    """Messages as the archive has them, one a minute."""
    return [
        RestoredMessage(turn=100 + n, role=Role.USER, content=f"Archived {n}.", timestamp=NOON + timedelta(minutes=n))
        for n in range(messages)
    ]


def restored(messages: int | list[RestoredMessage] = 20, **fields: object) -> TopicRestored:
    """An evicted topic on its way back."""
    event = TopicRestored(
        session_id="s",
        timestamp=when(10),
        topic_id="old",
        title="An old matter",
        created_at=NOON,
        importance=0.8,
        access_count=11,
        tags=["ship"],
        summary="What it was about.",
        messages=kept(messages) if isinstance(messages, int) else messages,
    )
    return msgspec.structs.replace(event, **fields)


def test_restored_topic_is_as_it_was() -> None:
    """Its id, title, creation, importance, tags, summary and messages; four at hand, the others packed; one access.

    A restoration that comes twice, for a topic that is still there, or without messages changes nothing.
    """
    talk, *_ = two_topics(turn=1000)
    talk.put(restored(), vector=matter(7))
    talk.store()
    change = talk.changes[-1]

    assert_fields(change, cause="restored", topic_id="old", title="An old matter", summary="What it was about.")
    assert_fields(change, importance=0.8, access_count=12, tags=["ship"], message_count=20, released_messages=0)
    assert_fields(change, active_turns=list(range(116, 120)), packed_turns=list(range(100, 116)))
    assert_fields(change, created_at=NOON, last_active_at=when(10), active=False)
    assert "second" == talk.active.title
    told = len(talk.changes)
    talk.put(restored())
    talk.put(restored(0, topic_id="older"))
    assert (told, 20) == (len(talk.changes), talk.titled("An old matter")[1].message_count)


@pytest.mark.behaviour("topic-06")
def test_a_slower_summariser_is_asked_at_each_compaction() -> None:
    """With the summary so far; its answer stands until the next compaction, and is late after that."""
    talk = Talk(ask=True, asked_chars=100)
    talk.discuss(0, 22)
    asked = talk.of(TopicSummaryRequested)
    for each in asked:
        talk.put(
            TopicSummarised(
                session_id="s",
                timestamp=each.timestamp,
                topic_id=each.topic_id,
                packed=each.packed,
                summary=f"Of {each.packed}.",
                summarised_by="model-x",
            )
        )

    assert [(9, 9), (18, 9)] == [(each.packed, len(each.turns)) for each in asked]
    assert ("", True) == (asked[0].summary, bool(asked[1].summary))
    assert [("Of 18.", "model-x")] == [(each.summary, each.summarised_by) for each in talk.caused("summarised")]
