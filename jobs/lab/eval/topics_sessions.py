"""Sessions whose topics are known: stretches of several dialogues, each cut in two, said by one person in turn.

What belongs together is then a fact and no opinion: two messages share a topic if they come from the same dialogue.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from jobs.lab.eval.topics_dialogues import TopicDialogue
from models.errors import ConfigurationError
from models.events import Role, Turn
from streams.ports import Embedder, Vectors

DIALOGUES_PER_SESSION = 5
STRETCH_TURNS = 24
"""Longest stretch of one dialogue: a topic is compacted within it, and none outweighs the others."""
_MIN_USER_TURNS = 4
"""Two in either part."""
_EMBEDDED_AT_ONCE = 256


class MixedSession(Struct, frozen=True):
    """One session made of several dialogues.

    Attributes:
        turns: In the order in which they are said.
        dialogues: Of each turn, which of the session's dialogues it comes from.
        vectors: Of each turn, its row in the matrix of embeddings; -1 for turns that are not matched.
    """

    turns: Sequence[Turn]
    dialogues: Sequence[int]
    vectors: Sequence[int]

    @property
    def user_places(self) -> list[int]:
        """Places of the turns that are matched."""
        return [place for place, row in enumerate(self.vectors) if row >= 0]

    @property
    def user_dialogues(self) -> list[int]:
        """Dialogues of the turns that are matched."""
        return [self.dialogues[place] for place in self.user_places]

    @property
    def user_rows(self) -> list[int]:
        """Rows of the turns that are matched, in the matrix of embeddings."""
        return [row for row in self.vectors if row >= 0]


class Mixed(Struct, frozen=True):
    """Sessions to measure on, and the embeddings of their user turns, `(n_user_turns, dim)`."""

    sessions: Sequence[MixedSession]
    vectors: Vectors


def mix(dialogues: Sequence[TopicDialogue], embedder: Embedder, *, sessions: int, seed: int) -> Mixed:
    """Make sessions of five dialogues each; the same seed gives the same ones.

    Every dialogue is used once before one is used again. A dialogue with less than four user turns is left out.

    Raises:
        ConfigurationError: Fewer than five dialogues are long enough.
    """
    usable = [dialogue for dialogue in dialogues if dialogue.user_turns >= _MIN_USER_TURNS]
    if len(usable) < DIALOGUES_PER_SESSION:
        raise ConfigurationError(
            f"{len(usable)} dialogues have {_MIN_USER_TURNS} user turns or more, {DIALOGUES_PER_SESSION} are needed: "
            "give more files, or none for the demo's"
        )
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    rows: dict[str, int] = {}
    mixed, waiting = [], list[TopicDialogue]()
    for _ in range(sessions):
        if len(waiting) < DIALOGUES_PER_SESSION:
            waiting = rng.sample(usable, len(usable))
        chosen, waiting = waiting[:DIALOGUES_PER_SESSION], waiting[DIALOGUES_PER_SESSION:]
        mixed.append(_interleaved([_stretch(dialogue, rng) for dialogue in chosen], rng, rows))
    return Mixed(mixed, _embedded(list(rows), embedder))


def _stretch(dialogue: TopicDialogue, rng: random.Random) -> Sequence[Turn]:
    """A run of turns with enough user turns in it; of a short dialogue all of it."""
    turns = dialogue.turns
    begins = _next_user(turns, rng.randrange(max(1, len(turns) - STRETCH_TURNS + 1)))
    run = turns[begins : begins + STRETCH_TURNS]
    said = sum(turn.role is Role.USER for turn in run)
    return run if said >= _MIN_USER_TURNS else turns[-STRETCH_TURNS:]


def _interleaved(stretches: Sequence[Sequence[Turn]], rng: random.Random, rows: dict[str, int]) -> MixedSession:
    """Every stretch in two parts, the second some time after the first."""
    order = [*range(len(stretches)), *range(len(stretches))]
    rng.shuffle(order)
    begun: set[int] = set()
    turns: list[Turn] = []
    dialogues: list[int] = []
    for number in order:
        stretch = stretches[number]
        middle = _next_user(stretch, len(stretch) // 2)
        part = stretch[middle:] if number in begun else stretch[:middle]
        begun.add(number)
        turns += part
        dialogues += [number] * len(part)
    vectors = [
        rows.setdefault(t.content, len(rows)) if t.role is Role.USER and t.content.strip() else -1 for t in turns
    ]
    return MixedSession(turns, dialogues, vectors)


def _next_user(turns: Sequence[Turn], begin: int) -> int:
    """Where the user speaks next: people come to a matter, and back to it, by saying something."""
    return next((n for n in range(begin, len(turns)) if turns[n].role is Role.USER), begin)


def _embedded(texts: Sequence[str], embedder: Embedder) -> Vectors:
    chunks = [texts[n : n + _EMBEDDED_AT_ONCE] for n in range(0, len(texts), _EMBEDDED_AT_ONCE)]
    return np.concatenate([embedder.embed(chunk) for chunk in chunks])
