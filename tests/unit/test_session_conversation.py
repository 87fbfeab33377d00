"""What a session hands to apps' memories and to projects, and what is left and told of one that is erased."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from models import events
from models.entities import entity_key
from models.policy import Policy
from models.policy.app import AppPolicy
from models.policy.project import ProjectPolicy
from models.text.words import estimate_tokens
from models.wire.arrival import SessionTimedOut
from tests.support.escalation_driver import judged_by
from tests.support.fields import assert_fields
from tests.support.session_driver import NOON, Session, said

OF_TURN_3: Any = {"session_id": "s", "user_id": "u", "app_id": "a", "turn": 3, "timestamp": NOON}
ERASED = events.SessionErased(session_id="s", timestamp=NOON + timedelta(days=400), request_id="r")


def ends(session: Session) -> list[events.ConversationEnded]:
    """Every end so far."""
    return [output for output in session.outputs if isinstance(output, events.ConversationEnded)]


def with_apps(**more: object) -> Policy:
    """The default policy with other rules for apps."""
    return Policy(apps=AppPolicy(**more))  # type: ignore[arg-type]


def talk(session: Session, *contents: str, first: int = 0) -> None:
    """Turns of a user and an assistant by turns, each stored."""
    for number, content in enumerate(contents, first):
        session.say(number, content, role=events.Role.ASSISTANT if number % 2 else events.Role.USER)
        session.store()


def test_an_end_tells_what_was_notable() -> None:
    """With the episode's summary, topics and times, in the order of the turns; no turns where nobody is asked."""
    session = Session()
    talk(session, "I decided to sail.", "Good.", "I prefer oak.", "I've booked a berth.", "Bye", "Bye", "I own a dog.")
    session.end(minute=9)
    (event,), (episode,) = ends(session), [o for o in session.outputs if isinstance(o, events.EpisodeClosed)]

    assert [0, 2, 3, 6] == [notable.turn for notable in event.notables]
    assert_fields(event, space="user", reason="bye", first_turn=0, last_turn=6, turn_count=7, turns=[])
    assert (episode.summary, episode.key_topics, episode.source) == (event.summary, event.key_topics, event.source)
    assert (NOON, NOON + timedelta(minutes=6)) == (event.started_at, event.ended_at)


def test_an_end_goes_to_each_space_that_the_policy_names() -> None:
    """Under the key of its space, each with an id of its own."""
    session = Session(with_apps(spaces=("app", "user")))
    session.say(0)
    session.end()

    assert ["app:a", "app:a/u"] == [entity_key(event) for event in ends(session)]
    assert len({event.id for event in ends(session)}) == 2


def test_without_apps_nothing_is_kept_or_emitted() -> None:
    """Turned off, a session is what it was before."""
    session = Session(with_apps(enabled=False))
    talk(session, *["I decided to sail."] * 6)

    assert "n" not in session.stored
    session.end()
    assert ends(session) == []


def test_who_comes_back_goes_on_with_the_same_conversation() -> None:
    """Its memory is made anew, of what was notable before and after; forgotten, it begins afresh."""
    session = Session()
    talk(session, "I decided to sail.")
    session.end(minute=1)
    session.store()
    assert {"head", "n"} <= set(session.stored)

    session.say(1, "I prefer oak.", timestamp=NOON + timedelta(minutes=2))
    session.end(minute=3)

    assert [["I decided to sail."], ["I decided to sail.", "I prefer oak."]] == [
        [notable.text for notable in event.notables] for event in ends(session)
    ]

    session.put(SessionTimedOut("s", session.deadline))
    session.store()

    assert session.stored == {}


@pytest.mark.behaviour("app-03")
def test_a_language_model_sees_all_that_was_said() -> None:
    """Every turn as it was said or put right, also one that came late; nothing of it stays once the session closed."""
    session = Session(with_apps(ask=True, asked_turn_chars=100))
    talk(session, *[f"{number} {'oak ' * 40}" for number in range(40)])
    session.say(41, "And last.")
    session.say(40, "Between.")
    session.put(events.TurnCorrected(**OF_TURN_3, content="It was teak."))
    session.store()
    session.end()
    session.store()
    (event,) = ends(session)
    said = [turn.content for turn in event.turns]

    assert ["0", "It was teak.", "39", "Between.", "And last."] == [
        said[0].split()[0], said[3], said[39].split()[0], *said[40:]
    ]  # fmt: skip
    assert ([], {100}) == (event.earlier, {len(said[n]) for n in (0, 1, 2, *range(4, 40))})
    assert not [name for name in session.stored if name.startswith("x")]


def test_of_what_does_not_fit_a_language_model_sees_summaries() -> None:
    """The last turns exactly and, in a quarter of the budget at most, what was said before; the state has no more."""
    session = Session(with_apps(ask=True, asked_tokens=400))
    talk(session, *[f"I decided to plant {number} oaks. {'And so on. ' * 9}" for number in range(60)])
    kept = sum(len(part) for name, part in session.stored.items() if name.startswith("x"))
    session.end()
    (event,) = ends(session)
    tokens = [sum(map(estimate_tokens, said)) for said in ([turn.content for turn in event.turns], event.earlier)]

    assert (320, 59) == (tokens[0], int(event.turns[-1].content.split()[4]))
    assert 50 <= tokens[1] <= 100
    assert int(event.earlier[0].split()[4]) < 20
    assert kept < 2 * 4 * 400


def test_after_an_erasure_a_turn_begins_a_new_session() -> None:
    """Also one with a low number, in the same batch; it knows nothing of before."""
    session = Session()
    talk(session, *["I decided to sail."] * 7)
    session.say(7)
    session.put(ERASED)
    session.say(3, "I prefer oak.", timestamp=NOON + timedelta(minutes=10))
    topics = [topic.title for _, topic in session.state.topics(session.policy).store.topics()] if session.state else []
    session.store()
    session.end()
    (event,) = ends(session)

    assert (3, 1, ["I prefer oak."]) == (event.first_turn, event.turn_count, [n.text for n in event.notables])
    assert ["I prefer oak."] == topics


@pytest.mark.parametrize("model", [True, False])
def test_an_erasure_ends_the_alert_and_says_no_more(model: bool) -> None:
    """Who was told that it fires is told that it ends: no grounds, no text, no user."""
    session = Session(judged_by() if model else Policy())
    for turn in range(9):
        session.put(said(turn, risk=None if model else 0.8), risk=0.8)
        session.store()
    fired = session.alerts[-1]
    session.put(structs.replace(ERASED, app_id="a"))
    ended = session.alerts[-1]
    session.store()

    assert (events.AlertStatus.FIRING, events.AlertStatus.RESOLVED, "erased") == (
        fired.status,
        ended.status,
        ended.cause,
    )
    assert (fired.alert_id, fired.severity, fired.fingerprint, entity_key(fired)) == (
        ended.alert_id,
        ended.severity,
        ended.fingerprint,
        entity_key(ended),
    )
    assert_fields(ended, user_id="", evidence=[], signals=[], escalation=None, reason="the session was erased")
    assert (session.outputs[-1], session.stored) == (ended, {})


def sent(session: Session) -> tuple[list[events.ProjectTurnAdded], list[events.ProjectConversationEnded]]:
    """Turns and ends that went to projects."""
    outputs: list[events.OutputEvent] = session.outputs
    turns = [event for event in outputs if isinstance(event, events.ProjectTurnAdded)]
    return turns, [event for event in outputs if isinstance(event, events.ProjectConversationEnded)]


def test_turns_with_a_project_are_forwarded() -> None:
    """Of users and assistants, once each; without a project, or switched off, nothing is sent, nor at the end."""
    session, other, off = Session(), Session(), Session(Policy(projects=ProjectPolicy(enabled=False)))
    session.say(0, project_id="web")
    session.say(1, project_id="web", role=events.Role.SYSTEM)
    session.say(2, project_id="web", role=events.Role.ASSISTANT)
    session.say(2, project_id="web")
    other.say(0)
    off.say(0, project_id="web")
    other.end()
    off.end()

    assert [(0, "web"), (2, "web")] == [(event.turn, event.project_id) for event in sent(session)[0]]
    assert ([], []) == sent(other) == sent(off)


def test_every_project_of_a_session_is_told_of_its_end() -> None:
    """Each once, as many as the policy names; also after the state was stored in between."""
    session = Session(Policy(projects=ProjectPolicy(projects_of_session=2)))
    for turn, project in enumerate(("web", "app", "web", "third")):
        session.say(turn, project_id=project)
        session.store()
    session.end()

    assert [("web", "ended", "bye"), ("app", "ended", "bye")] == [
        (event.project_id, event.status, event.reason) for event in sent(session)[1]
    ]


def test_a_time_out_pauses_and_an_erased_session_tells_nobody_of_its_end() -> None:
    """Nobody said that the one ended; what erases the other tells the project too."""
    silent, erased = Session(), Session()
    for session in (silent, erased):
        session.say(0, project_id="web")
    silent.put(SessionTimedOut("s", silent.deadline))
    erased.put(events.SessionErased(session_id="s", timestamp=NOON, request_id="e"))
    erased.end()

    assert ["paused"] == [event.status for event in sent(silent)[1]]
    assert [] == sent(erased)[1]
