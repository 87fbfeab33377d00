"""What a replay no longer expects after an erasure, and what it still does."""

from datetime import UTC, datetime, timedelta
from typing import Any

from aiokafka.structs import ConsumerRecord
from msgspec import Struct
from msgspec.structs import replace

from models import events
from models.entities import entity_key
from models.policy import Policy
from models.risk.scorer import RuleScorer
from models.wire.codec import encode
from streams.erase.concerned import User
from streams.oracle.followers import compare_tiers, episodes_of, states_of
from streams.oracle.replay import Forgotten, Replayed, SessionReplay, TurnKey
from tests.support.lake_records import example
from tests.support.session_driver import said
from tests.support.users_replayed import POLICY, Commands
from tests.support.zero_embedder import NoEmbedder
from tests.unit.test_erasure_projects import HERS, MINE, OTHERS_OWN, SHARED

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = AT + timedelta(minutes=30)


def turn(session_id: str, number: int, app_id: str = "a") -> events.Turn:
    """A turn of a session."""
    return said(number, session_id=session_id, app_id=app_id, timestamp=AT + timedelta(seconds=number))


def erased(session_id: str, app_id: str = "a") -> events.SessionErased:
    """The session is to be forgotten."""
    return events.SessionErased(session_id=session_id, app_id=app_id, timestamp=LATER, request_id="r")


def replayed(*log: events.Turn | events.SessionErased) -> Replayed:
    """The oracle of sessions for a partition with these events."""
    replay = SessionReplay(Policy(), NoEmbedder(), RuleScorer())
    at_ms = int((AT + timedelta(hours=1)).timestamp() * 1000)
    records = [(event.session_id.encode(), encode(event)) for event in log]
    replay.fold(
        0, [ConsumerRecord("t", 0, n, at_ms, 1, key, value, None, 0, 0, ()) for n, (key, value) in enumerate(records)]
    )
    return replay.result()


def forwarded(found: Replayed, *, forgotten: bool) -> list[int]:
    """Offsets of the turns that were forwarded and are, or are not, forgotten."""
    return sorted(
        event.source.offset
        for event_id, event in found.outputs.items()
        if isinstance(event, events.UserTurnAdded) and (event_id in found.forgotten) == forgotten
    )


def of_kind(found: Replayed, kind: type[Struct]) -> list[events.OutputEvent]:
    """Outputs of a kind that are forgotten."""
    return [found.outputs[event_id] for event_id in found.forgotten if isinstance(found.outputs[event_id], kind)]


def test_an_erased_session_is_not_expected_any_more() -> None:
    """Its outputs and turns of before are not; another session's, and its own of afterwards, are."""
    found = replayed(turn("s", 0), turn("other", 0), turn("s", 1), erased("s"), turn("s", 0))

    assert forwarded(found, forgotten=True) == [0, 2]
    assert forwarded(found, forgotten=False) == [1, 4]
    assert found.turn_keys == {TurnKey("a", "s", 0), TurnKey("a", "other", 0)}


def test_another_app_s_session_of_the_same_id_is_expected() -> None:
    """Where an erasure names its app; one of an earlier release, which names none, takes both."""
    said = [turn("s", 0), turn("s", 0, "b"), turn("s", 1), turn("s", 1, "b")]
    found, both = replayed(*said, erased("s")), replayed(*said, erased("s", ""))

    assert (forwarded(found, forgotten=True), forwarded(found, forgotten=False)) == ([0, 2], [1, 3])
    assert found.turn_keys == {TurnKey("b", "s", 0), TurnKey("b", "s", 1)}
    assert (forwarded(both, forgotten=True), both.turn_keys) == ([0, 1, 2, 3], set())


def write(log: Commands, event: events.UserErased | events.UserSessionErased) -> None:
    """Write an erasure behind the other commands."""
    log.write(encode(event), entity_key(event).encode())


def without(log: Commands, session_id: str) -> Replayed:
    """The oracle of sessions for the log, where one session was erased after all of it so far."""
    gone = {event_id for event_id, event in log.forwarded.items() if event.session_id == session_id}
    return log.sessions()._replace(forgotten=frozenset(gone))


def test_an_erased_session_of_a_user() -> None:
    """The episode that holds some of its turns went as a whole; turns of others in it count as remembered."""
    log = Commands()
    log.turns(0, 9)
    log.turns(10, 24, session="kept")
    log.answer(1, 20)
    sessions = without(log, "s")
    write(
        log,
        events.UserSessionErased(
            app_id="a", user_id="u", timestamp=LATER, session_id="s", request_id="r", started_at=AT, ended_at=AT
        ),
    )
    users = log.users()

    assert len(of_kind(users, events.EpisodeCompressed)) == 1
    assert episodes_of(users) == {}
    assert compare_tiers(sessions, users, POLICY).counts == {}


def test_an_erased_user_begins_anew() -> None:
    """Numbers begin with 1 again: the old episode must not be taken for one of the new turns."""
    log = Commands()
    log.turns(0, 24)
    log.answer(1, 20)
    sessions = without(log, "s")
    write(log, events.UserErased(app_id="a", user_id="u", timestamp=LATER, request_id="r"))
    gone = log.users()
    log.turns(25, 27, session="new")
    users = log.users()

    assert [*states_of(gone, POLICY)] == []
    assert [user for user, _ in states_of(users, POLICY)] == [User("a", "u")]
    assert compare_tiers(without(log, "s"), users, POLICY).counts == {}
    assert compare_tiers(sessions, gone, POLICY).counts == {}


def told(*numbered: tuple[int, events.ProjectOutput]) -> dict[str, events.OutputEvent]:
    """Outputs by id, each caused by the record at its offset."""
    return {
        f"{n}": replace(event, id=f"{n}", source=replace(event.source, offset=offset))
        for n, (offset, event) in enumerate(numbered)
    }


def taken(
    erasure: events.ProjectErased | events.ProjectSessionErased, outputs: dict[str, events.OutputEvent]
) -> list[str]:
    """Ids of those that an erasure at offset 9 takes."""
    forgotten = Forgotten()
    forgotten.note(erasure, events.Position("commands.v1", MINE.source.partition, 9))
    return sorted(forgotten.among(outputs))


def test_an_erased_session_of_a_project_and_an_erased_project() -> None:
    """What it said, and an edit of that, not what others or it said afterwards; or all of one project, by whomever."""
    audited = replace(example(events.ProjectAudited), item_id=MINE.item_id)
    said = told((1, MINE), (2, audited), (3, replace(SHARED, item_id="a-1")), (4, OTHERS_OWN), (10, MINE))
    whole = told((1, MINE), (2, OTHERS_OWN), (3, replace(OTHERS_OWN, project_id="another")), (10, OTHERS_OWN))
    about: dict[str, Any] = {
        "app_id": MINE.app_id,
        "project_id": MINE.project_id,
        "timestamp": LATER,
        "request_id": "r",
    }

    assert taken(events.ProjectSessionErased(**about, session_ids=[HERS.conversation_id]), said) == ["0", "1", "2"]
    assert taken(events.ProjectErased(**about), whole) == ["0", "1"]
