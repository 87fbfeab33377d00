"""Invariants of user memory once nothing is under way, whatever the roles went through. Pure.

| where | what holds |
|---|---|
| `users' turns` | every turn that the sessions' oracle forwards is in exactly one episode of its user, or at hand |
| `answers` | every episode that was asked for has come |

Turns of a session that was erased are in neither. An episode that had some went as a whole.

The first one also shows what no comparison of `commands.v1` with itself can: a turn that stands on the log and was
passed over in the fold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from models.erasure import ErasureSubject
from models.events import EpisodeCompressed, EpisodeRequested, UserTurnAdded, user_key
from models.policy import Policy
from models.user.state import UserState
from streams.oracle.comparison import Comparison, DifferenceKind
from streams.oracle.replay import Replayed

_OF_USER = "user:"
"""How the keys of users begin; beside them stand spaces of memories, and the partition."""
USERS_TURNS, ANSWERS = "users' turns", "answers"


class UserId(NamedTuple):
    """A user of one app."""

    app_id: str
    user_id: str


def name_of(user: UserId) -> str:
    """As in the keys of `commands.v1`."""
    return user_key(user.app_id, user.user_id)


def states_of(oracle: Replayed, policy: Policy) -> Iterator[tuple[UserId, UserState]]:
    """Every user that an oracle of users knows, none that was erased; one that stands on two partitions comes twice."""
    for entities in oracle.entities.values():
        for entity in entities:
            if entity.startswith(_OF_USER):
                state = UserState(entity, entities.get, policy)
                if state.known:
                    yield UserId(state.head.app_id, state.head.user_id), state


def episodes_of(oracle: Replayed) -> dict[UserId, list[EpisodeCompressed]]:
    """Episodes of each user, but those that were erased."""
    found: dict[UserId, list[EpisodeCompressed]] = {}
    for event in oracle.outputs.values():
        if isinstance(event, EpisodeCompressed) and event.id not in oracle.forgotten:
            found.setdefault(_user(event), []).append(event)
    return found


def unanswered(oracle: Replayed, policy: Policy) -> list[str]:
    """Episodes that were asked for and have not come."""
    return [
        f"{name_of(user)}, turns {first}-{last}"
        for user, state in states_of(oracle, policy)
        for first, last in state.head.waiting
    ]


def compare_tiers(sessions: Replayed, users: Replayed, policy: Policy) -> Comparison:
    """Every turn in one episode or at hand.

    Args:
        sessions: The oracle of sessions, which says whose turns there are.
        users: The oracle of users.
        policy: As the roles had it.
    """
    forwarded = [event for event in sessions.outputs.values() if isinstance(event, UserTurnAdded)]
    expected = Counter(_forwarded_name(turn) for turn in forwarded if turn.id not in sessions.forgotten)
    erased = {_forwarded_name(turn) for turn in forwarded if turn.id in sessions.forgotten}
    found = Counter(_remembered(users, policy, erased))
    result = Comparison(checked={USERS_TURNS: expected.total()})
    result.add(USERS_TURNS, DifferenceKind.MISSING, (expected - found).elements())
    more = found - expected
    result.add(USERS_TURNS, DifferenceKind.DOUBLED, (name for name in more.elements() if name in expected))
    result.add(USERS_TURNS, DifferenceKind.FALSE, (name for name in more.elements() if name not in expected))
    return result


def compare_answers(users: Replayed, policy: Policy) -> Comparison:
    """Every episode that was asked for has come."""
    asked = sum(isinstance(event, EpisodeRequested) for event in users.outputs.values())
    result = Comparison(checked={ANSWERS: asked})
    result.add(ANSWERS, DifferenceKind.MISSING, unanswered(users, policy))
    return result


def _remembered(oracle: Replayed, policy: Policy, erased: AbstractSet[str]) -> Iterator[str]:
    """Each turn as often as it is in an episode, or at hand and in none; of an erased episode those that were not."""
    numbers: dict[UserId, list[range]] = {}
    for event in oracle.outputs.values():
        if isinstance(event, EpisodeCompressed):
            user, forgotten = _user(event), event.id in oracle.forgotten
            names = (_turn_name(user, run.session_id, turn) for run in event.turns for turn in run.turns)
            yield from (name for name in names if not (forgotten and name in erased))
            # Who was erased as a whole and came again begins anew with 1.
            if not (forgotten and ErasureSubject("user", *user) in oracle.erased):
                numbers.setdefault(user, []).append(range(event.first_turn, event.last_turn + 1))
    for user, state in states_of(oracle, policy):
        for number in _in_no_episode(state, numbers.get(user, ())):
            yield from (_turn_name(user, turn.session_id, turn.turn) for turn in state.turns(number, number))


def _in_no_episode(state: UserState, made: Iterable[range]) -> list[int]:
    """The user's numbers of turns that are in the state and in no episode."""
    return sorted(set(range(state.head.low, state.head.turn_count + 1)).difference(*made))


def _user(event: UserTurnAdded | EpisodeCompressed) -> UserId:
    return UserId(event.app_id, event.user_id)


def _forwarded_name(turn: UserTurnAdded) -> str:
    return _turn_name(_user(turn), turn.session_id, turn.turn)


def _turn_name(user: UserId, session_id: str, turn: int) -> str:
    return f"{name_of(user)}, {session_id}, turn {turn}"
