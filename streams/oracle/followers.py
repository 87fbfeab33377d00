"""Comparison of archive and index, which follow the logs with a delay, with the oracles. Pure.

| compared | rule |
|---|---|
| archive | each turn and output id once, the same number of refused records as the oracle; nothing erased |
| index | by session and number: each turn that the policy keeps, no others, and not more points than turns |
| index of users | each user's active facts, episodes and number of turns |
| index of projects | each project's memories, episodes, chunks, conversations and pending facts, all fields |
| `users' turns` | each turn that the sessions' oracle forwards is counted once by its user's memory |
| `answers` | each requested episode exists |

Texts are compared by digest, so that printed differences have no text of users.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256

import msgspec
from msgspec import Struct

from models.entities import REGISTRY
from models.erasure import ErasureSubject
from models.events import (
    DeadLetter,
    EpisodeCompressed,
    EpisodeRequested,
    ProjectItem,
    ProjectItemChanged,
    SessionName,
    UserTurnAdded,
    project_key,
    session_key,
    user_key,
)
from models.events.topics import PROJECTS
from models.policy import Policy
from models.user.state import UserState
from models.wire.envelope import superseded
from streams.erase.concerned import Project, User
from streams.masking.records import RecordMasker
from streams.oracle.comparison import Comparison, DifferenceKind, by_topic
from streams.oracle.replay import Replayed, without_session

_OF_USER = "user:"
"""Prefix of users' keys; other keys are those of spaces and of the partition."""
USERS_TURNS, ANSWERS = "users' turns", "answers"


def name_of(user: User) -> str:
    """Name as in the keys of `commands.v1`."""
    return user_key(user.app_id, user.user_id)


def states_of(oracle: Replayed, policy: Policy) -> Iterator[tuple[User, UserState]]:
    """All users of an oracle without erased ones; a user on two partitions is listed twice."""
    for entities in oracle.entities.values():
        for entity in entities:
            if entity.startswith(_OF_USER):
                state = UserState(entity, entities.get, policy)
                if state.known:
                    yield User(state.head.app_id, state.head.user_id), state


def episodes_of(oracle: Replayed) -> dict[User, list[EpisodeCompressed]]:
    """Episodes of each user, without erased ones."""
    found: dict[User, list[EpisodeCompressed]] = {}
    for event in oracle.outputs.values():
        if isinstance(event, EpisodeCompressed) and event.id not in oracle.forgotten:
            found.setdefault(_user(event), []).append(event)
    return found


def unanswered(oracle: Replayed, policy: Policy) -> list[str]:
    """Requested episodes that do not exist yet."""
    return [
        f"{name_of(user)}, turns {first}-{last}"
        for user, state in states_of(oracle, policy)
        for first, last in state.head.waiting
    ]


def compare_tiers(sessions: Replayed, users: Replayed, policy: Policy) -> Comparison:
    """Check that each turn that the sessions' oracle forwards is counted once by its user's memory.

    That each counted turn is in one episode or uncompressed is a property of the fold (`tests/property/test_users.py`).
    Users with erased data are skipped, since an erasure removes counts.
    """
    forwarded = [event for event in sessions.outputs.values() if isinstance(event, UserTurnAdded)]
    touched = {_user(turn) for turn in forwarded if turn.id in sessions.forgotten}
    expected = Counter(name_of(_user(turn)) for turn in forwarded if _user(turn) not in touched)
    found = Counter[str]()
    for user, state in states_of(users, policy):
        if user not in touched:
            found[name_of(user)] += state.head.turn_count
    result = Comparison(checked={USERS_TURNS: expected.total()})
    result.add(USERS_TURNS, DifferenceKind.MISSING, (expected - found).elements())
    result.add(USERS_TURNS, DifferenceKind.DOUBLED, (found - expected).elements())
    return result


def compare_answers(users: Replayed, policy: Policy) -> Comparison:
    """Check that each requested episode exists."""
    asked = sum(isinstance(event, EpisodeRequested) for event in users.outputs.values())
    result = Comparison(checked={ANSWERS: asked})
    result.add(ANSWERS, DifferenceKind.MISSING, unanswered(users, policy))
    return result


def _user(event: UserTurnAdded | EpisodeCompressed) -> User:
    return User(event.app_id, event.user_id)


ARCHIVE_TURNS, ARCHIVE_REFUSED, INDEX, INDEX_USERS = "archive turns", "archive refused", "index", "index of users"
INDEX_PROJECTS = "index of projects"
_ARCHIVED = {topic.name for topic in REGISTRY.archived_topics}
_DIGEST_CHARS = 12


class Archived(Struct, kw_only=True):
    """Content of the archive.

    Attributes:
        turns: App, session and number of each row of the view `turns`.
        doubled_rows: Rows of `raw.turns` beyond one for each record.
        ids: Topic → ids of its events.
        refused: Number of invalid records of the turns topic, which have no row.
        compacted: Topics from which records were removed before they were read.
    """

    turns: list[tuple[str, str, int]]
    doubled_rows: int
    ids: dict[str, set[str]]
    refused: int
    compacted: set[str]


class Indexed(Struct, kw_only=True):
    """Sessions in the index.

    Attributes:
        turns: App, session and number of the turns of all sessions of the oracle, from their payloads.
        at_most: Number of the newest turns that were read of each session.
        points: Number of all points, including unknown sessions.
    """

    turns: list[tuple[str, str, int]]
    at_most: int
    points: int


class IndexedUser(Struct, kw_only=True):
    """One user in the index.

    Attributes:
        facts: Category, key and value of each active fact.
        episodes: First and last turn of each episode.
        turn_count: Number of turns in the user's stats.
    """

    facts: list[tuple[str, str, str]]
    episodes: list[tuple[int, int]]
    turn_count: int


def compare_archive(found: Archived, oracle: Replayed, *others: Replayed) -> Comparison:
    """Compare the archive's turns and refused records with the sessions' oracle, its output ids with all oracles."""
    result = Comparison()
    expected = {turn_name(key) for key in oracle.turn_keys}
    archived = [turn_name(key) for key in found.turns]
    result.ids(ARCHIVE_TURNS, expected, set(archived))
    doubled = max(len(archived) - len(set(archived)), found.doubled_rows)
    result.add(ARCHIVE_TURNS, DifferenceKind.DOUBLED, [f"row {n + 1} too many" for n in range(doubled)])
    oracles = (oracle, *others)
    forgotten = frozenset[str]().union(*(each.forgotten for each in oracles))
    erased = frozenset[ErasureSubject]().union(*(each.erased for each in oracles))
    for name, events in by_topic(*oracles).items():
        if name in _ARCHIVED:
            may_miss = superseded(events.values()) if name in found.compacted else set[str]()
            # One that input beyond what is compared has followed at once was never written.
            may_miss |= {i for i, event in events.items() if REGISTRY.emits[type(event)].last_counts}
            gone = {event_id for event_id, event in events.items() if without_session(event, erased)}
            ids = found.ids.get(name, set())
            result.ids(f"archive {name}", events.keys(), ids, may_miss=may_miss | forgotten | gone)
    refused = sum(isinstance(event, DeadLetter) and event.stage == "decode" for event in oracle.outputs.values())
    _numbers(result, ARCHIVE_REFUSED, refused, found.refused)
    return result


def compare_index(found: Indexed, oracle: Replayed, *, keep_turns: int) -> Comparison:
    """Compare the index's turns and size with one point for each turn.

    Turns below a session's newest `keep_turns` numbers are deleted with the next batch of the session that has a higher
    turn (`streams.index.session_memory`); until then they may exist.
    """
    by_session: dict[SessionName, list[int]] = {}
    for app_id, session_id, turn in oracle.turn_keys:
        by_session.setdefault(SessionName(app_id, session_id), []).append(turn)
    expected, may_miss = set(), set()
    for session, turns in by_session.items():
        newest = sorted(turns, reverse=True)[: found.at_most]
        expected |= {turn_name((*session, turn)) for turn in newest}
        may_miss |= {turn_name((*session, turn)) for turn in newest if turn <= newest[0] - keep_turns}
    listed = {turn_name(key) for key in found.turns}
    known = {turn_name(key) for key in oracle.turn_keys}
    result = Comparison(checked={INDEX: len(expected)})
    result.add(INDEX, DifferenceKind.MISSING, expected - listed - may_miss)
    result.add(INDEX, DifferenceKind.FALSE, listed - known)
    unlisted = found.points - len(oracle.turn_keys) - len(listed - known)
    result.add(INDEX, DifferenceKind.FALSE, [f"point {n + 1} of no known session" for n in range(unlisted)])
    return result


def compare_users_index(
    found: Mapping[User, IndexedUser], oracle: Replayed, policy: Policy, *, mask: RecordMasker | None = None
) -> Comparison:
    """Compare the index's facts, episodes and turns of each user (`found`) with the oracle of users.

    If the index masks texts, `mask` masks both sides.
    """
    names: set[str] = set()
    made = episodes_of(oracle)
    for user, state in states_of(oracle, policy):
        facts = [(category.value, key, fact.value) for category, key, fact in state.facts.all() if fact.active]
        ranges = [(episode.first_turn, episode.last_turn) for episode in made.pop(user, ())]
        held = IndexedUser(facts=facts, episodes=ranges, turn_count=state.head.turn_count)
        names |= _user_names(user, held, mask)
    result = Comparison()
    result.ids(INDEX_USERS, names, {name for user, held in found.items() for name in _user_names(user, held, mask)})
    return result


def items_of(oracle: Replayed) -> dict[Project, list[ProjectItem]]:
    """Items of each project of an oracle without erased ones: the last event of each slot, if its item exists."""
    latest: dict[tuple[Project, str, int], ProjectItemChanged] = {}
    for event in oracle.outputs.values():
        if isinstance(event, ProjectItemChanged) and event.id not in oracle.forgotten:
            slot = Project(event.app_id, event.project_id), event.kind, event.slot
            if slot not in latest or event.revision >= latest[slot].revision:
                latest[slot] = event
    found: dict[Project, list[ProjectItem]] = {project: [] for project, _, _ in latest}
    for (project, kind, _), event in latest.items():
        if event.active:
            found[project].append(getattr(event, kind))
    return found


def compare_projects_index(
    found: Mapping[Project, Collection[ProjectItem]], oracle: Replayed, *, mask: RecordMasker | None = None
) -> Comparison:
    """Compare the index's items of each project (`found`) with the oracle; `mask` as in `compare_users_index`."""
    result = Comparison()
    result.ids(INDEX_PROJECTS, _item_names(items_of(oracle), mask), _item_names(found, mask))
    return result


def _item_names(held: Mapping[Project, Collection[ProjectItem]], mask: RecordMasker | None) -> set[str]:
    """Each item as one name."""

    def written(item: ProjectItem) -> bytes:
        value = msgspec.json.encode(item)
        return value if mask is None else mask.value(PROJECTS, value)

    return {
        f"{project_key(*project)}, {type(item).__name__} {item.id} {sha256(written(item)).hexdigest()[:_DIGEST_CHARS]}"
        for project, items in held.items()
        for item in items
    }


def _user_names(user: User, held: IndexedUser, mask: RecordMasker | None) -> set[str]:
    """All items, each as one name."""
    shown = (lambda text: text) if mask is None else mask.text
    facts = {
        f"{name_of(user)}, fact {category}/{key} {sha256(shown(value).encode()).hexdigest()[:_DIGEST_CHARS]}"
        for category, key, value in held.facts
    }
    episodes = (f"{name_of(user)}, episode {first}-{last}" for first, last in held.episodes)
    return {f"{name_of(user)}, {held.turn_count} turns", *facts, *episodes}


def _numbers(result: Comparison, where: str, expected: int, found: int) -> None:
    result.checked[where] = expected
    result.add(where, DifferenceKind.MISSING, [f"{n + 1} of {expected}" for n in range(found, expected)])
    result.add(where, DifferenceKind.FALSE, [f"{n + 1}, beyond {expected}" for n in range(expected, found)])


def turn_name(key: tuple[str, str, int]) -> str:
    """Name of a turn in differences: app, session and number.

    >>> turn_name(("shop", "chat-1", 7))
    'session:shop/chat-1, turn 7'
    """
    app_id, session_id, turn = key
    return f"{session_key(app_id, session_id)}, turn {turn}"
