"""Memories to ask: users with facts, episodes and turns, folded from the demo's sentences, and questions about them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from msgspec import Struct

from jobs.demo.conversations import load_conversations
from jobs.lab.bench.folds import folded_user
from models.events import EpisodeCompressed, FactChanged, Position, Role, Turn, UserMemoryChanged
from models.events.user import UserOutput
from models.policy import Policy
from streams.index.session_memory import SessionVectorMemory
from streams.index.user_memory import UserMemory
from streams.ports import Embedder, VectorStore

TURNS_EACH = 930
MEMORIES_EACH = 1_000
"""Of a user, about: the turns, and the facts and episodes that they leave."""

_APPS = ("shop", "travel", "writing", "support")
_SESSION_TURNS = 30
_BEGINS = datetime(2026, 1, 5, 8, tzinfo=UTC)
_SENTENCE = re.compile(r"[^.!?]+[.!?]+")
_LEAST_WORDS = 4
SAID = msgspec.toml.decode((Path(__file__).parent / "said.toml").read_bytes(), type=dict[str, list[str]])
"""`facts` that users tell of themselves, in turn; `places` and `things` in them; turns `asking` end to end."""
_SAYS_EVERY = 10


class CorpusQuestion(Struct, frozen=True):
    """A question to a user's memory about something that was said."""

    app_id: str
    user_id: str
    query: str


def users_for(memories: int) -> int:
    """Users that have so many memories together.

    >>> users_for(100_000)
    100
    """
    return max(1, round(memories / MEMORIES_EACH))


class Corpus:
    """Makes users and questions; the same seed makes the same ones.

    Args:
        policy: By which users are folded.
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

    def user(self, number: int) -> tuple[list[Turn], list[UserOutput]]:
        """Turns of the user of this number, and the fold's outputs; requests are answered at once, extractively."""
        rng = random.Random(f"{self._seed}/{number}")  # noqa: S311 - repeatable, not secret
        turns, first = [self._turn(rng, number, n) for n in range(TURNS_EACH)], number * TURNS_EACH
        return turns, list(folded_user(turns, self._policy, first_turn=first, first_offset=2 * first + 1))

    def questions(self, users: int) -> Iterator[CorpusQuestion]:
        """Questions without end, to users chosen at random; each of words like those of a turn."""
        rng = random.Random(f"{self._seed}/questions")  # noqa: S311 - repeatable, not secret
        while True:
            number = rng.randrange(users)
            about = rng.choice(self._sentences[Role.USER])
            yield CorpusQuestion(app_of(number), user_of(number), f"What did we say about this: {about}")

    def _turn(self, rng: random.Random, number: int, n: int) -> Turn:
        role = Role.ASSISTANT if n % 2 else Role.USER
        session, turn = divmod(n, _SESSION_TURNS)
        said = rng.sample(self._sentences[role], 2)
        if n % _SAYS_EVERY == 0:
            (thing, other), facts = rng.sample(SAID["things"], 2), SAID["facts"]
            fact = facts[n // _SAYS_EVERY % len(facts)]
            said[0] = fact.format(place=rng.choice(SAID["places"]), thing=thing, other=other)
        return Turn(
            session_id=f"{user_of(number)}-{session}",
            user_id=user_of(number),
            app_id=app_of(number),
            turn=turn,
            role=role,
            content=" ".join(said),
            timestamp=_BEGINS + timedelta(days=session, minutes=turn),
        )


async def fill(store: VectorStore, embedder: Embedder, corpus: Corpus, users: int) -> None:
    """Index users through the memories that the index role writes by, a user at a time."""
    sessions, memory = SessionVectorMemory(store, embedder), UserMemory(store, embedder)
    for number in range(users):
        turns, outputs = corpus.user(number)
        places = [Position("turns", 0, number * TURNS_EACH + n) for n in range(TURNS_EACH)]
        await sessions.add_turns(turns, embedder.embed([turn.content for turn in turns]), places=places)
        await memory.add_episodes([(e, e.source.offset) for e in outputs if isinstance(e, EpisodeCompressed)])
        await memory.add_facts([(e, e.source.offset) for e in outputs if isinstance(e, FactChanged)])
        await memory.add_stats([(e, e.source.offset) for e in outputs if isinstance(e, UserMemoryChanged)][-1:])


def user_of(number: int) -> str:
    """Id of the user of this number."""
    return f"user-{number}"


def app_of(number: int) -> str:
    """App of the user of this number."""
    return _APPS[number % len(_APPS)]


def _sentences(text: str) -> list[str]:
    return [found.strip() for found in _SENTENCE.findall(text) if len(found.split()) >= _LEAST_WORDS]
