"""Two apps with the same sessions, users and projects: forgetting in one leaves every record and state of the other."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Literal

from aiokafka.structs import ConsumerRecord
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct

from models.entities import TOPIC_OF, entity_key
from models.erasure import ErasureSubject
from models.events import DEFAULT_APP, EraseRequested, Role, SessionEnded, SessionName, Turn
from models.events.base import name_of_part
from models.events.topics import COMMANDS
from models.policy import Policy
from models.risk.scorer import RuleScorer
from models.wire.codec import encode
from streams.erase.concerned import Concerned, of_sessions, of_users, remembered_in, spoke_in, subject_of
from streams.oracle.replay import LogReplay, Replayed, SessionReplay, UsersReplay
from tests.support.zero_embedder import NoEmbedder

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = AT + timedelta(minutes=30)
APPS = ("shop", "bank", DEFAULT_APP)
SAID = ("My name is Alex.", "We decided to use PostgreSQL as our database.", "I live in Oslo.", "Good day.")
Scope = Literal["session", "user", "app"]


class Spoken(Struct, frozen=True):
    """Somebody said something in a session of an app, or ended it."""

    app: str
    session: int
    user: int
    text: int
    ends: bool


SPOKEN = st.builds(
    Spoken,
    st.sampled_from(APPS),
    st.integers(0, 1),
    st.integers(0, 1),
    st.integers(0, len(SAID) - 1),
    st.sampled_from([False] * 5 + [True]),
)


def turns_log(spoken: Sequence[Spoken]) -> list[Turn | SessionEnded]:
    """The log: sessions, users and projects of all apps have the same ids."""
    log: list[Turn | SessionEnded] = []
    for number, each in enumerate(spoken):
        when, session_id = AT + timedelta(seconds=number), f"s{each.session}"
        if each.ends:
            log.append(SessionEnded(session_id=session_id, app_id=each.app, timestamp=when))
            continue
        turn = Turn(
            session_id=session_id,
            user_id=f"u{each.user}",
            app_id=each.app,
            project_id="web",
            turn=number,
            role=Role.USER,
            content=SAID[each.text],
            timestamp=when,
        )
        log.append(turn)
    return log


def folded(replay: LogReplay, events: Iterable[Struct]) -> Replayed:  # type: ignore[type-arg]
    """What an oracle makes of a log of one partition."""
    records = []
    for offset, event in enumerate(events):
        key, value = entity_key(event).encode(), encode(event)
        at_ms = int((AT + timedelta(hours=1)).timestamp() * 1000)
        records.append(ConsumerRecord("t", 0, offset, at_ms, 1, key, value, None, 0, 0, ()))
    replay.fold(0, records)
    return replay.result()


def sessions_of_log(log: Iterable[Struct]) -> Replayed:
    """The oracle of sessions."""
    return folded(SessionReplay(Policy(), NoEmbedder(), RuleScorer()), log)


def commands_of(sessions: Replayed) -> list[Struct]:
    """What the sessions role sends to other memories."""
    return [event for event in sessions.outputs.values() if TOPIC_OF[type(event)] is COMMANDS]


def app_of(key: str) -> str:
    """The app in a key of state."""
    return name_of_part(key.partition(":")[2].partition("/")[0])


def states_of(replayed: Replayed) -> dict[str, dict[str, bytes]]:
    """Entities by their keys, but for the partition's own state."""
    return {key: parts for entities in replayed.entities.values() for key, parts in entities.items() if key}


def found_of(wanted: EraseRequested, told: Sequence[Struct]) -> tuple[Concerned, ErasureSubject]:
    """Whom an erasure concerns, by all that the logs tell."""
    concerned = Concerned()
    if wanted.session_id:
        concerned.sessions[SessionName(wanted.app_id, wanted.session_id)] = {}
    first = subject_of(wanted, concerned.sessions)
    for event in filter(first.names, told):
        for session_id, user, span in spoke_in(event, first):
            concerned.spoke(session_id, user, span)
    everybody = {SessionName(event.app_id, event.session_id) for event in told if isinstance(event, Turn)}
    subject = subject_of(wanted, concerned.sessions, everybody)
    for event in filter(subject.names, told):
        for project, session_id in remembered_in(event, subject):
            concerned.remembered(project, session_id)
    return concerned, subject.follow(told)


@given(st.lists(SPOKEN, min_size=1, max_size=30), st.sampled_from(["session", "user", "app"]), st.sampled_from(APPS))
@example(spoken=[Spoken("shop", 0, 0, 0, ends=True)], scope="session", app="shop")
def test_forgetting_in_one_app_touches_no_other(spoken: list[Spoken], scope: Scope, app: str) -> None:
    """State of others byte for byte, their records not concerned; of the subject nothing is left in any state."""
    log = turns_log(spoken)
    sessions = sessions_of_log(log)
    users = folded(UsersReplay(Policy()), commands_of(sessions))
    wanted = EraseRequested(
        request_id="r",
        timestamp=LATER,
        scope=scope,
        app_id=app,
        user_id="u0" if scope == "user" else "",
        session_id="s0" if scope == "session" else "",
    )
    told = [*log, *sessions.outputs.values(), *users.outputs.values()]
    concerned, subject = found_of(wanted, told)
    concerned.known(states_of(users), subject)
    to_sessions = of_sessions(wanted, concerned, LATER)
    to_users = [*of_users(wanted, concerned, subject, LATER)]

    assert {app} >= {event.app_id for event in (*to_sessions, *to_users)}
    assert [] == [event for event in told if getattr(event, "app_id", app) != app and subject.concerns(event)]

    left = sessions_of_log([*log, *to_sessions])
    left_users = folded(UsersReplay(Policy()), [*commands_of(sessions), *to_users])
    for before, after in ((sessions, left), (users, left_users)):
        others = {key: parts for key, parts in states_of(before).items() if app_of(key) != app}
        assert others == {key: parts for key, parts in states_of(after).items() if app_of(key) != app}
        assert {app} >= {after.outputs[each].app_id for each in after.forgotten}  # type: ignore[union-attr]
    held = chain(states_of(left), states_of(left_users))
    assert [] == [key for key in held if subject.owns_session(key) or subject.owns(key)]
    assert {each for each in sessions.turn_keys if each.app_id != app} <= left.turn_keys
