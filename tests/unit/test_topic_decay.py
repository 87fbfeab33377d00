"""How topics fade (topic memory, §3): the source's timeline comes out of real folds with event time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from models.policy.topic import TopicPolicy
from models.session.topics.decay import half_life, memory_type
from tests.support.topic_driver import Talk, when

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
    crowd(talk)
    talk.ask(0, timestamp=when(4))
    crowd(talk, timestamp=when(4))
    talk.ask(1, timestamp=when(8))

    assert "the one" in talk.titles
    assert "other 0" not in talk.titles


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


def test_active_topic_is_never_evicted() -> None:
    """Not even one of importance 0, which has faded at once; when it is left, it goes with the next start."""
    talk = Talk()
    crowd(talk, 20)
    talk.ask(0, "worthless", metadata={"importance": 0})
    assert ("worthless", []) == (talk.active.title, talk.caused("evicted"))
    talk.ask(1, "another")

    assert ["worthless"] == [change.title for change in talk.caused("evicted")]


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
