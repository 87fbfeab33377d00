"""Memories to ask: users with facts, episodes and turns, made of the demo's conversations, and questions about them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from jobs.demo.conversations import load_conversations
from models.events import EpisodeCompressed, FactChanged, Position, Role, Turn, UserMemoryChanged
from models.events.user import FactCategory, SessionTurns
from models.policy import Policy
from models.text.summary import Passage
from models.user.fold import summarise_episode
from streams.index.session_memory import SessionVectorMemory
from streams.index.user_memory import UserMemory
from streams.ports import Embedder, VectorStore

FACTS_EACH = 20
EPISODES_EACH = 50
TURNS_EACH = 930
MEMORIES_EACH = FACTS_EACH + EPISODES_EACH + TURNS_EACH
"""Of a user: what about a thousand turns leave (seed 002: about 15 facts and 5 episodes of a hundred)."""

_APPS = ("shop", "travel", "writing", "support")
_SESSION_TURNS = 30
_SHORT_TERM = 10
_BEGINS = datetime(2026, 1, 5, 8, tzinfo=UTC)
_SENTENCE = re.compile(r"[^.!?]+[.!?]+")
_LEAST_WORDS = 4
_PLACES = ("Oslo", "Lisbon", "Leeds", "Osaka", "Quito", "Tartu", "Cork", "Porto", "Bergen", "Ghent")
_THINGS = ("tea", "chess", "sailing", "poetry", "baking", "cycling", "jazz", "gardening", "maps", "pottery")
_ABOUT = (
    *((FactCategory.IDENTITY, key) for key in ("name", "location", "occupation", "language", "birthday")),
    *((FactCategory.PREFERENCE, key) for key in ("hobby", "food", "music", "colour", "transport", "editor", "news")),
    *((FactCategory.CONSTRAINT, key) for key in ("diet", "budget", "availability", "allergy_nuts")),
    *((FactCategory.INSTRUCTION, key) for key in ("answer_length", "tone", "units", "greeting")),
)


class Question(Struct, frozen=True):
    """What somebody asks of a user's memory; it is about something that was said."""

    app_id: str
    user_id: str
    query: str


class MadeUser(Struct, frozen=True):
    """A user's events, as the roles would have made them."""

    turns: list[Turn]
    episodes: list[EpisodeCompressed]
    facts: list[FactChanged]
    standing: UserMemoryChanged


def users_for(memories: int) -> int:
    """Users that have so many memories together.

    >>> users_for(100_000)
    100
    """
    return max(1, round(memories / MEMORIES_EACH))


class Corpus:
    """Makes users and questions; the same seed makes the same ones.

    Args:
        policy: How episodes are summarised.
        seed: Of all that is chosen.
    """

    def __init__(self, policy: Policy, seed: int = 0) -> None:
        self._policy = policy
        self._seed = seed
        said = [(role, text) for each in load_conversations() for turn in each.turns for role, text in turn.items()]
        self._sentences = {
            role: [found for of, text in said if of is role for found in _sentences(text)]
            for role in (Role.USER, Role.ASSISTANT)
        }

    def user(self, number: int) -> MadeUser:
        """The user of this number."""
        rng = random.Random(f"{self._seed}/{number}")  # noqa: S311 - repeatable, not secret
        turns = [self._turn(rng, number, n) for n in range(TURNS_EACH)]
        facts = [_fact(rng, number, n) for n in range(FACTS_EACH)]
        episodes = [self._episode(number, n, turns) for n in range(EPISODES_EACH)]
        return MadeUser(turns, episodes, facts, _standing(number, turns))

    def questions(self, users: int) -> Iterator[Question]:
        """Questions without end, to users chosen at random; each of words like those of a turn."""
        rng = random.Random(f"{self._seed}/questions")  # noqa: S311 - repeatable, not secret
        while True:
            number = rng.randrange(users)
            about = rng.choice(self._sentences[Role.USER])
            yield Question(app_of(number), user_of(number), f"What did we say about this: {about}")

    def _turn(self, rng: random.Random, number: int, n: int) -> Turn:
        role = Role.ASSISTANT if n % 2 else Role.USER
        session, turn = divmod(n, _SESSION_TURNS)
        return Turn(
            session_id=f"{user_of(number)}-{session}",
            user_id=user_of(number),
            app_id=app_of(number),
            turn=turn,
            role=role,
            content=" ".join(rng.sample(self._sentences[role], 2)),
            timestamp=_time(n),
        )

    def _episode(self, number: int, n: int, turns: Sequence[Turn]) -> EpisodeCompressed:
        first, end = n * TURNS_EACH // EPISODES_EACH, (n + 1) * TURNS_EACH // EPISODES_EACH
        packed = turns[first:end]
        summary = summarise_episode([Passage(turn.content) for turn in packed], self._policy)
        return EpisodeCompressed(
            **_whose(number, packed[-1].timestamp, n),
            session_id=packed[-1].session_id,
            episode=n + 1,
            first_turn=first + 1,
            last_turn=end,
            turn_range=f"turns {first + 1}-{end}",
            turns=_runs(packed),
            summary=summary.text,
            summarised_by="extractive",
            key_topics=summary.key_topics,
            embedding=[],
            embedded_by="",
            started_at=packed[0].timestamp,
            ended_at=packed[-1].timestamp,
            tokens_before=0,
            tokens_after=0,
        )


async def fill(store: VectorStore, embedder: Embedder, corpus: Corpus, users: int) -> None:
    """Index users through the memories that the index role writes by, a user at a time.

    Args:
        store: Empty.
        embedder: Whose vectors it takes.
        corpus: Makes the users.
        users: How many.
    """
    sessions, memory = SessionVectorMemory(store, embedder), UserMemory(store, embedder)
    for number in range(users):
        made = corpus.user(number)
        first = number * TURNS_EACH
        places = [Position("turns", 0, first + n) for n in range(TURNS_EACH)]
        vectors = embedder.embed([turn.content for turn in made.turns])
        await sessions.add_turns(made.turns, vectors, places=places)
        offset = number * (FACTS_EACH + 1)
        await memory.add_episodes([(event, number * EPISODES_EACH + n) for n, event in enumerate(made.episodes)])
        await memory.add_facts([(event, offset + n) for n, event in enumerate(made.facts)])
        await memory.add_standings([(made.standing, offset + FACTS_EACH)])


def user_of(number: int) -> str:
    """Id of the user of this number."""
    return f"user-{number}"


def app_of(number: int) -> str:
    """App of the user of this number."""
    return _APPS[number % len(_APPS)]


def _sentences(text: str) -> list[str]:
    return [found.strip() for found in _SENTENCE.findall(text) if len(found.split()) >= _LEAST_WORDS]


def _time(n: int) -> datetime:
    """Of a user's turn: half an hour a session, one a day."""
    session, turn = divmod(n, _SESSION_TURNS)
    return _BEGINS + timedelta(days=session, minutes=turn)


def _whose(number: int, timestamp: datetime, offset: int) -> dict[str, Any]:
    return {
        "id": f"{user_of(number)}/{offset}",
        "user_id": user_of(number),
        "app_id": app_of(number),
        "timestamp": timestamp,
        "source": Position("commands", 0, offset),
    }


def _fact(rng: random.Random, number: int, n: int) -> FactChanged:
    category, key = _ABOUT[n % len(_ABOUT)]
    at = _time(rng.randrange(TURNS_EACH))
    return FactChanged(
        **_whose(number, at, n),
        session_id=f"{user_of(number)}-0",
        category=category,
        key=key,
        value=f"{rng.choice(_THINGS)} in {rng.choice(_PLACES)}",
        confidence=0.9,
        importance=round(rng.uniform(0.3, 1.0), 2),
        active=True,
        cause="stored",
        valid_from=at,
        valid_until=None,
        turn=rng.randrange(_SESSION_TURNS),
        extracted_by="rules",
        history=[],
    )


def _standing(number: int, turns: Sequence[Turn]) -> UserMemoryChanged:
    return UserMemoryChanged(
        **_whose(number, turns[-1].timestamp, len(turns)),
        session_id=turns[-1].session_id,
        turn_count=len(turns),
        compressed_turns=len(turns) - _SHORT_TERM,
        requested_turns=len(turns) - _SHORT_TERM,
        short_term=_runs(turns[-_SHORT_TERM:]),
        facts=FACTS_EACH,
        episodes=EPISODES_EACH,
        seen={"0": (number + 1) * TURNS_EACH - 1},
    )


def _runs(turns: Sequence[Turn]) -> list[SessionTurns]:
    runs: list[SessionTurns] = []
    for turn in turns:
        if not runs or runs[-1].session_id != turn.session_id:
            runs.append(SessionTurns(turn.session_id, []))
        runs[-1].turns.append(turn.turn)
    return runs
