"""Which topic a message joins (topic memory, §1), through the fold."""

from __future__ import annotations

import pytest

from models.events import Role
from tests.support.fields import assert_fields
from tests.support.topic_driver import Talk, between, causes, when

QUARTER = [1.0, 1.0, 1.0, 1.0]
"""Its cosine to the first matter is exactly 0.5, quantised too."""


def test_first_message_starts_a_topic() -> None:
    """Its title is the message; nothing has accessed it yet."""
    talk = Talk()
    (started,) = talk.ask(0, "What are the key features?")

    assert_fields(started, cause="started", title="What are the key features?", active=True, kept=True)
    assert ([0], [], 1, 0) == (started.active_turns, started.packed_turns, started.message_count, started.access_count)
    assert_fields(started, importance=0.5, memory_type="short-term", half_life_days=1.0, summary=None)


@pytest.mark.parametrize(
    ("threshold", "topics"), [(0.49, 1), (0.5, 2), (0.51, 2)], ids=["above it joins", "at it starts", "below it starts"]
)
def test_threshold_must_be_passed(threshold: float, topics: int) -> None:
    """A message joins above the threshold, as the source says, and not at it."""
    talk = Talk(similarity_threshold=threshold, active_bonus=0)
    talk.ask(0)
    talk.ask(QUARTER)

    assert topics == len(talk.titles)


def test_without_a_threshold_the_seeds_is_taken() -> None:
    """0.7, also by name: a cosine of 0.71 joins, one of 0.69 does not."""
    near, far = between(0, 1, 0.4979), between(0, 1, 0.512)
    for policy in ({}, {"similarity_threshold": 0.7}):
        joined, started = Talk(active_bonus=0, **policy), Talk(active_bonus=0, **policy)
        joined.ask(0)
        joined.ask(near)
        started.ask(0)
        started.ask(far)

        assert (0.7, 1, 2) == (joined.policy.topics.threshold, len(joined.titles), len(started.titles))


def test_best_of_several_is_joined() -> None:
    """The nearest, not the first above the threshold."""
    talk = Talk(similarity_threshold=0.3, active_bonus=0)
    talk.ask(0, "zero")
    talk.ask(1, "one")
    talk.ask(2, "two")
    (left, returned) = talk.ask(between(0, 1, 0.6))

    assert (["left", "returned"], "two", "one") == (causes([left, returned]), left.title, returned.title)


def test_active_topic_has_a_bonus() -> None:
    """People stay with a matter: what is nearly as near to the active topic stays there, without an event."""
    talk = Talk(similarity_threshold=0.3)
    talk.ask(0, "zero")
    talk.ask(1, "one")

    assert ([], 2) == (talk.ask(between(0, 1, 0.49)), talk.active.message_count)
    assert ["left", "returned"] == causes(talk.ask(between(0, 1, 0.1)))


def test_message_without_a_vector_joins_the_active_topic() -> None:
    """An empty text has no direction; a vector of zeros or of NaN has none either."""
    talk = Talk()
    talk.ask(0)
    talk.ask(1, "one")
    for vector in (None, [0.0] * 64, [float("nan")] * 64):
        talk.ask(vector)

    assert ("one", 4, 3) == (talk.active.title, talk.active.message_count, talk.active.access_count)


def test_others_join_the_active_topic() -> None:
    """The assistant, a tool and the system answer to what was asked last; that is no access."""
    talk = Talk()
    talk.ask(0, "zero")
    talk.ask(1, "one")
    for role in (Role.ASSISTANT, Role.TOOL, Role.SYSTEM):
        talk.answer(role=role)

    assert ([1, 2, 3, 4], 0) == (talk.at_hand("one"), talk.active.access_count)


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("One line\nand\tanother  one " + "x" * 100, "One line and another one " + "x" * 55),
        ("\n" * 1_000_000, ""),
    ],
    ids=["lines", "blank"],
)
def test_title_is_the_first_80_characters_on_one_line(content: str, title: str) -> None:
    """As the source cuts it; line breaks become spaces, and alone say nothing."""
    talk = Talk()
    talk.ask(0, content)

    assert title == talk.active.title


def test_every_message_refreshes_its_topic() -> None:
    """`last_active_at` is the latest event time of its messages, the assistant's too; creation stays."""
    talk = Talk()
    talk.ask(0, "zero", timestamp=when(0))
    talk.ask(1, timestamp=when(1))
    talk.ask(0, timestamp=when(2))
    talk.answer(timestamp=when(3))

    assert (when(0), when(3)) == (talk.active.created_at, talk.active.last_active_at)
    assert when(1) == talk.topics.store.topic(1).last_active_at


def test_topic_follows_a_matter_that_drifts() -> None:
    """Its embedding is the mean of what was said in it: step by step it goes where one step would not."""
    stepwise, at_once = Talk(similarity_threshold=0.6, active_bonus=0), Talk(similarity_threshold=0.6, active_bonus=0)
    stepwise.ask(0)
    at_once.ask(0)
    for share in (0.2, 0.4, 0.5, 0.6, 0.7):
        stepwise.ask(between(0, 1, share))
    at_once.ask(between(0, 1, 0.7))

    assert (1, 2) == (len(stepwise.titles), len(at_once.titles))


def test_nothing_is_kept_when_topics_are_off() -> None:
    """No parts, no events."""
    talk = Talk(enabled=False)
    talk.discuss(0, 30)
    talk.store()

    assert ([], []) == (talk.changes, [part for part in talk.stored if part.startswith("t")])


def test_topics_outlive_the_sessions_end() -> None:
    """A session that goes on within the retention still knows its topics; the end names the active one's turns."""
    talk = Talk()
    talk.discuss(0, 3)
    talk.end(minute=10)
    talk.store()
    closed = talk.changes[-1]
    talk.ask(0)

    assert ("closed", [0, 1, 2], True) == (closed.cause, closed.active_turns, closed.active)
    assert (1, 4) == (len(talk.titles), talk.active.message_count)
