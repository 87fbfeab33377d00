"""What holds of users' memories once nothing is under way (seed 002), whatever the roles went through. Pure.

| where | what holds |
|---|---|
| `users' turns` | every turn that the sessions' oracle forwards is in exactly one episode of its user, or at hand |
| `answers` | every episode that was asked for has come |

The first one also shows what no comparison of `commands.v1` with itself can: a turn that stands on the log and was
passed over in the fold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from models.events import EpisodeCompressed, EpisodeRequested, UserTurnAdded, user_key
from models.partition import PARTITION_ENTITY
from models.policy import Policy
from models.user_state import UserState
from streams.comparison import Comparison, Kind
from streams.replay import Replayed

USERS_TURNS, ANSWERS = "users' turns", "answers"


class UserId(NamedTuple):
    """A user of one app."""

    app_id: str
    user_id: str


def name_of(user: UserId) -> str:
    """As in the keys of `commands.v1`."""
    return user_key(user.app_id, user.user_id)


def states_of(oracle: Replayed, policy: Policy) -> Iterator[tuple[UserId, UserState]]:
    """Every user that an oracle of users knows; one that stands on two partitions comes twice."""
    for entities in oracle.entities.values():
        for entity, parts in entities.items():
            if entity != PARTITION_ENTITY:
                state = UserState.load(parts, policy)
                yield UserId(state.head.app_id, state.head.user_id), state


def episodes_of(oracle: Replayed) -> dict[UserId, list[EpisodeCompressed]]:
    """Episodes of each user."""
    found: dict[UserId, list[EpisodeCompressed]] = {}
    for event in oracle.outputs.values():
        if isinstance(event, EpisodeCompressed):
            found.setdefault(UserId(event.app_id, event.user_id), []).append(event)
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
    expected = Counter(_turn_name(UserId(turn.app_id, turn.user_id), turn.session_id, turn.turn) for turn in forwarded)
    found = Counter(_remembered(users, policy))
    result = Comparison(checked={USERS_TURNS: expected.total()})
    result.add(USERS_TURNS, Kind.MISSING, (expected - found).elements())
    more = found - expected
    result.add(USERS_TURNS, Kind.DOUBLED, (name for name in more.elements() if name in expected))
    result.add(USERS_TURNS, Kind.FALSE, (name for name in more.elements() if name not in expected))
    return result


def compare_answers(users: Replayed, policy: Policy) -> Comparison:
    """Every episode that was asked for has come."""
    asked = sum(isinstance(event, EpisodeRequested) for event in users.outputs.values())
    result = Comparison(checked={ANSWERS: asked})
    result.add(ANSWERS, Kind.MISSING, unanswered(users, policy))
    return result


def _remembered(oracle: Replayed, policy: Policy) -> Iterator[str]:
    """Each turn as often as it is in an episode, or at hand and in none."""
    episodes = episodes_of(oracle)
    for user, made in episodes.items():
        for episode in made:
            for run in episode.turns:
                yield from (_turn_name(user, run.session_id, turn) for turn in run.turns)
    for user, state in states_of(oracle, policy):
        for number in _in_no_episode(state, episodes.get(user, ())):
            (turn,) = state.turns(number, number)
            yield _turn_name(user, turn.session_id, turn.turn)


def _in_no_episode(state: UserState, made: Iterable[EpisodeCompressed]) -> list[int]:
    """The user's numbers of turns that are in the state and in no episode."""
    held = set(range(state.head.low, state.head.turn_count + 1))
    for episode in made:
        held -= set(range(episode.first_turn, episode.last_turn + 1))
    return sorted(held)


def _turn_name(user: UserId, session_id: str, turn: int) -> str:
    return f"{name_of(user)}, {session_id}, turn {turn}"
