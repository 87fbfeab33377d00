"""What a session's topics give to those who read them (topic memory, API methods)."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from models.session.topics.reading import get_full_topic_history, get_topic_context, get_topic_stats, list_topics
from tests.session_driver import NOON
from tests.topic_driver import Talk, when

FIRST = "Message 0 of it."
HOUR = timedelta(hours=1)


def long_talk() -> Talk:
    """A topic of 15 messages, nine of them packed, that was left for another."""
    talk = Talk()
    talk.discuss(0, 15)
    talk.ask(1, "another")
    return talk


def test_stats_have_every_field_of_the_seed() -> None:
    """By the source's names; ages in seconds of event time."""
    talk = long_talk()
    topic_id = talk.titled(FIRST)[1].topic_id
    stats = get_topic_stats(talk.topics, talk.watermark + HOUR, topic_id)

    assert {
        "topic_id": topic_id,
        "topic_title": FIRST,
        "active_messages": 6,
        "compressed_messages": 9,
        "total_messages": 15,
        "has_summary": True,
        "importance_score": 0.5,
        "access_count": 7,
        "memory_type": "transitioning",
        "half_life_days": 2.0,
        "age_seconds": 3600.0 + 15 * 60,
        "inactive_seconds": 3600.0 + 60,
    } == stats


def test_stats_of_the_active_topic_and_of_none() -> None:
    """Without an id the active one; None where there is nothing to tell."""
    talk = long_talk()
    stats = get_topic_stats(talk.topics, talk.watermark)

    assert stats is not None
    assert ("another", False, 1, 0, 0.0) == (
        stats["topic_title"],
        stats["has_summary"],
        stats["active_messages"],
        stats["compressed_messages"],
        stats["age_seconds"],
    )
    assert get_topic_stats(talk.topics, talk.watermark, "unknown") is None


def test_ages_are_never_negative() -> None:
    """A reader whose clock is behind sees a fresh topic."""
    stats = get_topic_stats(long_talk().topics, when(-400))

    assert stats is not None
    assert (0.0, 0.0) == (stats["age_seconds"], stats["inactive_seconds"])


def test_context_is_the_summary_and_what_is_at_hand() -> None:
    """As chat messages, oldest first, the summary as the system's."""
    talk = long_talk()
    slot, topic = talk.titled(FIRST)
    summary = talk.topics.store.summary(slot)
    assert summary is not None

    assert [
        {"role": "system", "content": f"Topic summary: {summary.text}"},
        *({"role": "assistant" if n % 2 else "user", "content": f"Message {n} of it."} for n in range(9, 15)),
    ] == get_topic_context(talk.topics, topic.topic_id)
    assert [{"role": "user", "content": "another"}] == get_topic_context(talk.topics)


def test_history_has_every_message() -> None:
    """Packed and at hand, in order of time, with Unix seconds; or only what is at hand."""
    talk = long_talk()
    topic_id = talk.titled(FIRST)[1].topic_id
    history = get_full_topic_history(talk.topics, topic_id)

    assert [
        {
            "role": "assistant" if n % 2 else "user",
            "content": f"Message {n} of it.",
            "timestamp": (NOON + timedelta(minutes=n + 1)).timestamp(),
        }
        for n in range(15)
    ] == history
    assert history[9:] == get_full_topic_history(talk.topics, topic_id, include_packed=False)
    assert ["another"] == [message["content"] for message in get_full_topic_history(talk.topics)]


def test_a_late_message_stands_in_order() -> None:
    """Also where it is younger by arrival than the packed ones, and older by time."""
    talk = Talk()
    for n in range(13):
        talk.ask(0, turn=2 * n, timestamp=NOON + timedelta(minutes=2 * n))
    talk.ask(0, turn=5, timestamp=NOON + timedelta(minutes=5))
    times = [message["timestamp"] for message in get_full_topic_history(talk.topics)]

    assert (sorted(times), 14) == (times, len(times))


def test_topics_are_listed_by_their_latest_message() -> None:
    """The latest active first."""
    talk = Talk()
    for about, title in enumerate(("first", "second", "third")):
        talk.ask(about, title)
    talk.ask(0)
    listed = list_topics(talk.topics, talk.watermark)

    assert ["first", "third", "second"] == [stats["topic_title"] for stats in listed]
    assert [0, 60, 120] == [stats["inactive_seconds"] for stats in listed]


def test_reading_changes_nothing() -> None:
    """It is no access: the state's bytes are the same, before and after."""
    talk = long_talk()
    talk.store()
    before = dict(talk.stored)
    list_topics(talk.topics, talk.watermark)
    for topic_id in (None, "unknown", talk.titled(FIRST)[1].topic_id):
        get_topic_stats(talk.topics, talk.watermark, topic_id)
        get_topic_context(talk.topics, topic_id)
        get_full_topic_history(talk.topics, topic_id)
    assert talk.state is not None
    assert {} == {part: value for part, value in talk.state.changed_parts().items() if part.startswith("t")}
    talk.store()

    assert before == talk.stored


def test_session_without_topics_reads_as_empty() -> None:
    """Before the first message."""
    talk = Talk(enabled=False)
    talk.ask(0)

    assert ([], None, [], []) == (
        list_topics(talk.topics, NOON),
        get_topic_stats(talk.topics, NOON),
        get_topic_context(talk.topics),
        get_full_topic_history(talk.topics),
    )


def test_closed_session_can_still_be_read() -> None:
    """While it is remembered."""
    talk = long_talk()
    before = msgspec.json.encode(get_full_topic_history(talk.topics))
    talk.end()
    talk.store()

    assert before == msgspec.json.encode(get_full_topic_history(talk.topics))
    assert 2 == len(list_topics(talk.topics, when(1)))
