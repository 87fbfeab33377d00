"""A topic that comes back from the archive by `TopicRestored`, through the fold."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from models.events import RestoredMessage, Role, TopicRestored
from tests.support.fields import assert_fields
from tests.support.session_driver import NOON
from tests.support.topic_driver import Talk, causes, matter, when


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


def two_topics() -> Talk:
    """A session of two topics, late in its life; the second is active."""
    talk = Talk()
    talk.ask(0, "first", turn=1000)
    talk.ask(1, "second")
    return talk


def test_restored_topic_is_as_it_was() -> None:
    """Its id, title, creation, importance, tags, summary and messages; four at hand, the others packed; one access."""
    talk = two_topics()
    talk.put(restored(), vector=matter(7))
    talk.store()
    change = talk.changes[-1]

    assert ("restored", "old", "An old matter", 0.8, 12, ["ship"], "What it was about.") == (
        change.cause,
        change.topic_id,
        change.title,
        change.importance,
        change.access_count,
        change.tags,
        change.summary,
    )
    assert (list(range(116, 120)), list(range(100, 116)), 20, 0) == (
        change.active_turns,
        change.packed_turns,
        change.message_count,
        change.released_messages,
    )
    assert_fields(change, created_at=NOON, last_active_at=when(10), active=False)
    assert "second" == talk.active.title


def test_restored_topic_is_matched_and_unpacked() -> None:
    """By the vector of its title: the user comes back to it as to any other."""
    talk = two_topics()
    talk.put(restored(), vector=matter(7))
    talk.store()
    changes = talk.ask(7)

    assert (["left", "unpacked"], 21) == (causes(changes), changes[-1].message_count)
    assert [f"Archived {n}." for n in range(20)] == [
        message.content for message in talk.topics.store.active_messages(talk.topics.active or 0)[:20]
    ]


def test_kept_topic_is_not_restored_over() -> None:
    """A restoration that comes twice, for a topic that is still there, or without messages changes nothing."""
    talk = two_topics()
    talk.put(restored())
    told = len(talk.changes)
    talk.put(restored())
    talk.put(restored(0, topic_id="older"))

    assert (told, 20) == (len(talk.changes), talk.titled("An old matter")[1].message_count)
