"""Archive and index against the oracles: each kind of difference is found, counted and named."""

import msgspec
import pytest

from models.erasure import ErasureSubject
from models.events import FactChanged, OutputEvent, ProjectItem
from streams.erase.concerned import Project, User
from streams.oracle import followers
from streams.oracle.comparison import DifferenceKind
from streams.oracle.replay import Replayed
from tests.support.projects_indexed import changed, episode, remembered, went
from tests.support.projects_indexed import conversation as talk
from tests.support.users_replayed import POLICY, conversation
from tests.unit.test_comparison import LETTER, ORACLE, OUTPUTS

ARCHIVED = followers.Archived(
    turns=[("a", "s-1", 0), ("a", "s-1", 1), ("a", "s-2", 0)],
    doubled_rows=0,
    ids={"episodes.v1": {"e-1"}, "dead-letters.v1": {"d-1"}, "profiles.v1": {"p-1", "p-2", "p-3"}},
    refused=1,
    compacted=set(),
)
INDEXED = followers.Indexed(turns=[("a", "s-1", 0), ("a", "s-1", 1), ("a", "s-2", 0)], at_most=1_000, points=3)
ALEX, ALEXANDER = User("a", "u"), User("a", "v")
USERS = {
    ALEX: followers.IndexedUser(facts=[("identity", "name", "Alex")], episodes=[(1, 20)], turn_count=25),
    ALEXANDER: followers.IndexedUser(facts=[("identity", "name", "Alexander")], episodes=[], turn_count=3),
}


def test_what_equals_has_no_differences() -> None:
    """Archive and index as the oracle's: nothing is found, and all of it was looked at."""
    found = followers.compare_archive(ARCHIVED, ORACLE)
    found.include(followers.compare_index(INDEXED, ORACLE, keep_turns=1_000))
    found.include(followers.compare_users_index(USERS, conversation().users, POLICY))

    assert ({}, []) == (found.counts, found.examples)
    assert (3, 1, 3) == (found.checked["archive turns"], found.checked["archive refused"], found.checked["index"])
    assert 5 == found.checked["index of users"]


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"turns": ARCHIVED.turns[1:]}, {"archive turns missing": 1}),
        ({"turns": [*ARCHIVED.turns, ("a", "s-3", 0)]}, {"archive turns false": 1}),
        ({"turns": [*ARCHIVED.turns, ("a", "s-1", 0)]}, {"archive turns doubled": 1}),
        ({"doubled_rows": 2}, {"archive turns doubled": 2}),
        ({"refused": 0}, {"archive refused missing": 1}),
        ({"refused": 3}, {"archive refused false": 2}),
        (
            {"ids": {**ARCHIVED.ids, "episodes.v1": {"e-2"}}},
            {"archive episodes.v1 missing": 1, "archive episodes.v1 false": 1},
        ),
        ({"ids": {**ARCHIVED.ids, "profiles.v1": {"p-2", "p-3"}}}, {"archive profiles.v1 missing": 1}),
        ({"ids": {**ARCHIVED.ids, "profiles.v1": {"p-2", "p-3"}}, "compacted": {"profiles.v1"}}, {}),
    ],
)
def test_archive(change: dict[str, object], counts: dict[str, int]) -> None:
    """Turns and ids missing, false and doubled, and another number of refused records."""
    assert counts == followers.compare_archive(msgspec.structs.replace(ARCHIVED, **change), ORACLE).counts


@pytest.mark.parametrize(
    ("change", "keep_turns", "counts"),
    [
        ({"turns": INDEXED.turns[1:], "points": 2}, 1, {}),
        ({"turns": INDEXED.turns[1:], "points": 2}, 2, {"index missing": 1}),
        ({"turns": [("a", "s-1", 1), ("a", "s-2", 0)], "at_most": 1}, 2, {}),
        ({"turns": [("a", "s-1", 0), ("a", "s-2", 0)], "at_most": 1}, 2, {"index missing": 1}),
        ({"turns": [*INDEXED.turns, ("a", "s-2", 7)], "points": 4}, 2, {"index false": 1}),
        ({"turns": [("a", "s-1", 0), ("a", "s-1", 1), ("a", "s-2", 7)]}, 2, {"index missing": 1, "index false": 1}),
        ({"points": 5}, 2, {"index false": 2}),
    ],
)
def test_index(change: dict[str, object], keep_turns: int, counts: dict[str, int]) -> None:
    """A turn by its key: missing, false or of no known session; what the policy forgets may be gone or still stand."""
    found = msgspec.structs.replace(INDEXED, **change)

    assert counts == followers.compare_index(found, ORACLE, keep_turns=keep_turns).counts


def test_the_archive_has_what_both_oracles_emit() -> None:
    """Turns that were forwarded, facts and standings, episodes; requests are not archived."""
    whole = conversation()
    found = followers.compare_archive(ARCHIVED, ORACLE, whole.sessions, whole.users)

    assert "archive requests.v1" not in found.checked
    assert (28, 2, 1) == tuple(
        found.counts[f"archive {name} missing"] for name in ("commands.v1", "facts.v1", "user-episodes.v1")
    )


@pytest.mark.parametrize(
    ("user", "change", "counts"),
    [
        (ALEX, {"facts": []}, {"index of users missing": 1}),
        (ALEX, {"facts": [("identity", "name", "Al")]}, {"index of users missing": 1, "index of users false": 1}),
        (ALEX, {"facts": USERS[ALEX].facts * 2}, {}),
        (ALEX, {"episodes": []}, {"index of users missing": 1}),
        (ALEX, {"episodes": [(1, 20), (1, 10)]}, {"index of users false": 1}),
        (ALEXANDER, {"turn_count": 2}, {"index of users missing": 1, "index of users false": 1}),
    ],
)
def test_index_of_users(user: User, change: dict[str, object], counts: dict[str, int]) -> None:
    """A fact, an episode or a standing that is missing, of another value, or too many."""
    found = {**USERS, user: msgspec.structs.replace(USERS[user], **change)}

    assert counts == followers.compare_users_index(found, conversation().users, POLICY).counts


def test_no_value_of_a_fact_is_printed() -> None:
    """Differences name what differs; what a user said stays where it is."""
    found = followers.compare_users_index({}, conversation().users, POLICY)
    told = [event.value for event in conversation().users.outputs.values() if isinstance(event, FactChanged)]

    assert ["Alex", "Alexander"] == sorted(told)
    assert [] == [example.what for example in found.examples if "Alex" in example.what]
    assert len(found.examples) == 5


def test_what_was_erased_may_be_gone_from_the_archive() -> None:
    """Events that an erasure took, and those of an erased app or user that no session's erasure tells of."""
    letter = msgspec.structs.replace(LETTER, value=b'{"user_id":"u","app_id":"a"')
    oracle = ORACLE._replace(outputs={**OUTPUTS, "d-1": letter}, forgotten=frozenset({"e-1"}))
    users = Replayed({}, {}, 0, set(), erased=frozenset({ErasureSubject("user", "a", "u")}))
    gone = msgspec.structs.replace(ARCHIVED, ids={**ARCHIVED.ids, "episodes.v1": set(), "dead-letters.v1": set()})

    assert {} == followers.compare_archive(gone, oracle, users).counts
    assert {"archive episodes.v1 missing": 1, "archive dead-letters.v1 missing": 1} == (
        followers.compare_archive(gone, ORACLE).counts
    )


WEB = Project("a", "web")


def project_log() -> dict[str, OutputEvent]:
    """A project in which a memory changed, one went, one took its place, and one was erased."""
    events = [
        changed(remembered(1), 0, 1),
        changed(remembered(1, "We use two boats."), 0, 4),
        changed(remembered(2), 1, 2),
        went(remembered(2), 1, 3),
        changed(remembered(3), 1, 5),
        changed(remembered(9), 7, 9),
        changed(episode(1), 0, 3),
        changed(talk(), 0, 5),
    ]
    return {event.id: event for event in events}


PROJECTS = Replayed({}, project_log(), 0, set(), frozenset({"a-web-memory-7-9"}))


@pytest.mark.parametrize(
    ("held", "missing", "false"),
    [
        ([remembered(1, "We use two boats."), remembered(3), episode(1)], 1, 0),
        ([remembered(1, "Secret."), remembered(3), episode(1), talk()], 1, 1),
        ([remembered(1, "We use two boats."), remembered(3), remembered(9), episode(1), talk()], 0, 1),
        ([], 4, 0),
        ([remembered(1, "We use two boats."), remembered(3), episode(1), talk()], 0, 0),
    ],
    ids=["one is missing", "another text", "one that was erased", "nothing", "all"],
)
def test_what_the_index_has_wrong_of_a_project(held: list[ProjectItem], missing: int, false: int) -> None:
    """It is counted, and named without its text. Of each slot the last item counts, but not what was erased."""
    found = followers.compare_projects_index({WEB: held}, PROJECTS)
    expected = {
        f"{followers.INDEX_PROJECTS} {DifferenceKind.MISSING}": missing,
        f"{followers.INDEX_PROJECTS} {DifferenceKind.FALSE}": false,
    }

    assert {what: count for what, count in expected.items() if count} == found.counts
    assert "Secret" not in str(found)
    assert (followers.items_of(PROJECTS) == {WEB: held}) is not bool(missing or false)
