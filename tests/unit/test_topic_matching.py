"""Which topic a message joins (topic memory, §1), and how topics fade (§3), through the fold."""

from datetime import timedelta

import pytest

from models.events import Role
from models.policy.topic import TopicPolicy
from models.state.decay import half_life, memory_type
from tests.support.fields import assert_fields
from tests.support.topic_driver import Talk, between, causes, when

QUARTER = [1.0, 1.0, 1.0, 1.0]
"""Its cosine to the first matter is exactly 0.5, quantised too."""


@pytest.mark.behaviour("topic-03")
def test_first_message_starts_a_topic() -> None:
    """Its title is the message; nothing has accessed it yet."""
    talk = Talk()
    (started,) = talk.ask(0, "What are the key features?")

    assert_fields(started, cause="started", title="What are the key features?", active=True, kept=True)
    assert ([0], [], 1, 0) == (started.active_turns, started.packed_turns, started.message_count, started.access_count)
    assert_fields(started, importance=1.0, memory_type="short-term", half_life_days=1.0, summary=None)


@pytest.mark.behaviour("topic-04")
@pytest.mark.parametrize(
    ("threshold", "topics"), [(0.49, 1), (0.5, 2), (0.51, 2)], ids=["above it joins", "at it starts", "below it starts"]
)
def test_threshold_must_be_passed(threshold: float, topics: int) -> None:
    """A message joins above the threshold, as the source says, and not at it."""
    talk = Talk(similarity_threshold=threshold, active_bonus=0)
    talk.ask(0)
    talk.ask(QUARTER)

    assert topics == len(talk.titles)


@pytest.mark.behaviour("topic-01")
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


@pytest.mark.behaviour("topic-17")
def test_others_join_the_active_topic() -> None:
    """The assistant, a tool and the system answer to what was asked last; that is no access.

    So does a user's message without a direction: an empty text's, a vector of zeros or of NaN.
    """
    talk = Talk()
    talk.ask(0, "zero")
    talk.ask(1, "one")
    for role in (Role.ASSISTANT, Role.TOOL, Role.SYSTEM):
        talk.answer(role=role)
    accesses = talk.active.access_count
    for vector in (None, [0.0] * 64, [float("nan")] * 64):
        talk.ask(vector)

    assert ([1, 2, 3, 4, 5, 6, 7], 0, 3) == (talk.at_hand("one"), accesses, talk.active.access_count)


@pytest.mark.behaviour("topic-03")
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


@pytest.mark.behaviour("topic-04")
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


RULES = TopicPolicy()
TIMELINE = (
    # accesses, half-life, memory type, survival: the source's table, all in days
    ((0, 4), 1, "short-term", 5),
    ((5, 9), 2, "transitioning", 10),
    ((10, 14), 4, "long-term", 20),
    ((15, 19), 8, "long-term", 40),
    ((20, 24), 16, "long-term", 80),
    ((25, 60), 30, "long-term", 150),
)
CASES = [(n, days, kind, survival) for accesses, days, kind, survival in TIMELINE for n in accesses]
FADED = "faded: priority below 0.05"


def crowd(talk: Talk, topics: int = 20, **more: object) -> None:
    """Other topics, a minute apart; they are about matters 20 and on."""
    for n in range(topics):
        talk.ask(20 + n, f"other {n}", **more)


def remembered(accesses: int, importance: float, days: float) -> Talk:
    """A session of 22 topics of which the first lies silent for some days and then a new one starts."""
    talk = Talk(active_bonus=0)
    for _ in range(accesses + 1):
        talk.ask(0, "the one", metadata={"importance": importance})
    last = talk.watermark
    crowd(talk)
    talk.ask(1, "the new one", timestamp=last + timedelta(days=days))
    return talk


def survives(accesses: int, importance: float, days: float) -> bool:
    """Whether it is still kept then; its last event says that it had faded, if not."""
    talk = remembered(accesses, importance, days)
    gone = [change for change in talk.caused("evicted") if change.title == "the one"]
    assert all(change.detail == FADED and change.priority < 0.05 for change in gone)
    kept = "the one" in talk.titles
    assert kept is not bool(gone)
    return kept


@pytest.mark.behaviour("topic-10", "topic-13", "topic-14", "topic-16")
@pytest.mark.parametrize(("accesses", "days", "kind", "survival"), CASES)
def test_seeds_timeline(accesses: int, days: int, kind: str, survival: int) -> None:
    """5, 10, 20, 40, 80, 150 days: of importance 1 a topic is there at four half-lives and gone at five."""
    first_gone = next(n for n in range(1, 10) if not survives(accesses, 1.0, n * days))

    assert survival == first_gone * days
    talk = remembered(accesses, 1.0, days)
    talk.ask(0)
    last = talk.changes[-1]
    assert ("the one", accesses + 1) == (last.title, last.access_count)
    assert (days, kind) == (half_life(accesses, RULES) / timedelta(days=1), memory_type(accesses, RULES))


def test_access_refreshes_the_timer() -> None:
    """Four days of silence, a message, four days of silence: it is kept, and its half-life counts from the message."""
    talk = Talk(active_bonus=0)
    talk.ask(0, "the one", metadata={"importance": 1.0})
    crowd(talk, metadata={"importance": 0.5})
    talk.ask(0, timestamp=when(4))
    crowd(talk, timestamp=when(4), metadata={"importance": 0.5})
    talk.ask(1, timestamp=when(8))

    assert "the one" in talk.titles
    assert "other 0" not in talk.titles


@pytest.mark.behaviour("topic-11")
def test_the_twenty_first_lets_all_that_faded_go() -> None:
    """As the source says: everything below 0.05 goes, the lowest first, the active topic never."""
    talk = Talk()
    for n in range(20):
        talk.ask(n, f"topic {n}", timestamp=when(n / 10), metadata={"importance": 1.0 if n == 3 else 0.5})
    talk.ask(20, "new", timestamp=when(4.4))
    evicted = talk.caused("evicted")

    # Of importance 0.5, 3.32 days are enough; topic 3 is 4.1 days old, but of importance 1.
    assert [f"topic {n}" for n in (0, 1, 2, *range(4, 11))] == [change.title for change in evicted]
    assert sorted(change.priority for change in evicted) == [change.priority for change in evicted]
    assert (11, "new") == (len(talk.titles), talk.active.title)
    assert list(range(20, 10, -1)) == [change.session_topics for change in evicted]


@pytest.mark.behaviour("topic-11")
def test_active_topic_is_never_evicted() -> None:
    """Not even one of importance 0, which has faded at once; when it is left, it goes with the next start."""
    talk = Talk()
    crowd(talk, 20)
    talk.ask(0, "worthless", metadata={"importance": 0})
    assert ("worthless", []) == (talk.active.title, talk.caused("evicted"))
    talk.ask(1, "another")

    assert ["worthless"] == [change.title for change in talk.caused("evicted")]


@pytest.mark.behaviour("topic-12")
def test_more_than_forty_fresh_topics() -> None:
    """None has faded, so the lowest priority goes: of equal importance the one that is silent longest."""
    talk = Talk()
    for n in range(43):
        talk.ask(n, f"topic {n}", metadata={"importance": 0.3 if n == 30 else 0.5})
    evicted = talk.caused("evicted")

    assert (40, ["topic 30", "topic 0", "topic 1"]) == (len(talk.titles), [change.title for change in evicted])
    assert {"more than 40 topics"} == {change.detail for change in evicted}


def test_watermark_of_the_partition_is_the_clock() -> None:
    """Other sessions move it: a topic's age is counted from there, also when this session's own clock lags."""
    talk = Talk()
    crowd(talk, 20)
    talk.watermark = when(10)
    talk.ask(0, "lagging", timestamp=when(1))

    assert (20, ["lagging"]) == (len(talk.caused("evicted")), talk.titles)
