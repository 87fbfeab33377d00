"""Topics between sessions: kept by their user for as long as their half-life says, and back with the user."""

from datetime import timedelta

import pytest
from msgspec import structs

from models.events import MemoryMode, MemoryModeSet, Position, SessionEnded, TopicsKept, TopicsRecalled
from tests.support.topic_driver import Talk
from tests.support.user_driver import NOON, User
from tests.unit.test_topic_matching import TIMELINE


def ended(talk: Talk, session: str = "s") -> TopicsKept:
    """The session ends; what it tells its user's memory."""
    talk.put(SessionEnded(session_id=session, timestamp=talk.watermark))
    (kept,) = talk.of(TopicsKept)[-1:]
    assert isinstance(kept, TopicsKept)
    return kept


def talked(accesses: int) -> TopicsKept:
    """A session of one topic, ended."""
    talk = Talk()
    for n in range(accesses + 1):
        talk.ask(0, f"What of the boat, {n}?")
    return ended(talk)


def back(user: User, *, days: float, session: str = "t") -> TopicsRecalled | None:
    """The user speaks again after so many days; what the session gets."""
    user.now += timedelta(days=days) - timedelta(minutes=1)
    outputs = user.say("Hello again.", session=session)
    found = next((output for output in outputs if isinstance(output, TopicsRecalled)), None)
    # That turn stands behind those with which sessions here begin.
    return found and structs.replace(found, source=Position("turns", 3, 300))


def remembering(*told: TopicsKept) -> User:
    """A user whose sessions told of topics; the clock stands where the last of them was active."""
    user = User()
    user.say("Hello.")
    for each in told:
        user.put(each)
        user.store()
    user.now = max(topic.last_active_at for each in told for topic in each.topics)
    return user


@pytest.mark.behaviour("topic-13")
@pytest.mark.parametrize(
    ("accesses", "days", "survival"), [(n, each[1], each[3]) for each in TIMELINE for n in each[0]]
)
def test_sources_timeline_across_sessions(accesses: int, days: int, survival: int) -> None:
    """5, 10, 20, 40, 80, 150 days out of the default policy: there a half-life before, gone then."""
    told = talked(accesses)
    recalled = back(remembering(told), days=survival - days)

    assert recalled is not None
    assert [(accesses, accesses + 1)] == [(topic.accesses, topic.messages) for topic in recalled.topics]
    assert back(remembering(told), days=survival) is None


@pytest.mark.behaviour("topic-26")
def test_a_topic_takes_in_what_the_new_session_began_of_it() -> None:
    """The user's first words are there before the topic is: they join it, under its id, as one access more."""
    told = talked(6)
    recalled = back(remembering(told), days=3)
    assert recalled is not None
    talk = Talk()
    talk.offset = 100
    talk.ask(1, "What of bread?")
    talk.ask(0, "What of the boat now?")
    talk.put(recalled)
    talk.put(recalled)  # after a crash of the memory role

    ((_, bread), (_, boat)) = talk.topics.store.topics()
    assert (told.topics[0].topic_id, "What of the boat now?") == (boat.topic_id, boat.title)
    assert (7, 8, 7) == (boat.access_count, boat.message_count, boat.recalled)
    assert ["restored", "merged", "merged"] == [change.cause for change in talk.changes[-3:]]
    assert (talk.active.topic_id, "What of bread?") == (boat.topic_id, bread.title)
    talk.ask(0)
    assert {boat.topic_id: (2, 2), bread.topic_id: (1, 0)} == {
        topic.topic_id: (topic.messages, topic.accesses) for topic in ended(talk).topics
    }


def test_sessions_add_up_and_tell_only_what_is_new() -> None:
    """What was told before is not told again: not by a session that goes on, nor by a record that comes again."""
    talk = Talk()
    talk.ask(0, "What of the boat?")
    talk.ask(0)
    first = ended(talk)
    talk.ask(0)
    second = ended(talk)
    user = remembering(first, second, second)
    recalled = back(user, days=1)

    assert recalled is not None
    assert [(3, 2)] == [(topic.messages, topic.accesses) for topic in recalled.topics]
    assert back(user, days=1) is None  # once for each session


@pytest.mark.parametrize(
    ("session", "title", "turns", "recalled"), [("s", "What of the boat, 0?", [0, 13], 0), ("t", "", [], 14)]
)
def test_words_come_back_to_the_session_that_said_them_alone(
    session: str, title: str, turns: list[int], recalled: int
) -> None:
    """Title, summary, tags and the turns' numbers: an erased session has no words elsewhere."""
    found = back(remembering(talked(13)), days=1, session=session)
    assert found is not None
    talk = Talk()
    talk.offset = 200
    talk.ask(1, turn=20)
    talk.put(found)
    (change,) = talk.caused("restored")

    assert (title, turns, recalled) == (change.title, change.released_runs, change.recalled_messages)
    assert bool(title) is (change.summary is not None) is ("boat" in str(found))


def test_erasures_take_topics_of_the_user_and_of_the_session() -> None:
    """Of a session, those that it had a part in; no name of it is left in the user's state."""
    user = remembering(talked(5))
    user.erase("s")
    user.store()

    assert not any(b"boat" in data and name.startswith("k:") for name, data in user.stored.items())
    assert [] == user.state.head.recalled_in
    assert back(user, days=1) is None


def test_most_topics_of_a_user() -> None:
    """Beyond `most_topics` the one that has faded most goes; a session gets `recalled` of them, the best first."""
    told = talked(0)
    (topic,) = told.topics
    user = remembering(
        *(
            structs.replace(
                told,
                id=f"x{n}",
                session_id=f"s{n}",
                topics=[structs.replace(topic, topic_id=f"t{n:02}", last_active_at=NOON - timedelta(minutes=50 - n))],
            )
            for n in range(50)
        )
    )
    recalled = back(user, days=0.1)

    assert recalled is not None
    assert [f"t{n:02}" for n in range(49, 29, -1)] == [each.topic_id for each in recalled.topics]
    assert 40 == sum(name.startswith("k:") for name in user.state.parts.names(""))


@pytest.mark.parametrize(
    ("mode", "gets", "keeps"), [("active", True, True), ("read_only", True, False), ("off", False, False)]
)
def test_memory_mode(mode: str, gets: bool, keeps: bool) -> None:
    """A user who reads alone gets topics and hands none over; one without memory neither."""
    told = talked(5)
    user = remembering(told)
    user.put(MemoryModeSet(app_id="a", user_id="u", timestamp=user.now, mode=MemoryMode(mode)))
    recalled = back(user, days=1)
    (topic,) = told.topics
    user.put(structs.replace(told, id="x", topics=[structs.replace(topic, topic_id="another")]))

    assert gets is (recalled is not None)
    assert keeps is ("k:another" in user.state.parts.names("k:"))
