"""Sessions whose topics are known, and the assignment of their messages to topics by the project's own fold.

A session holds stretches of several dialogues, each cut in two, said by one person in turn. What is counted are pairs
of messages: two belong together if they come from one dialogue.
"""

import random
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from datetime import timedelta
from math import comb
from typing import Final

import msgspec
from msgspec import Struct

from jobs.lab.eval.dialogues import BEGINS, TopicDialogue
from jobs.lab.eval.scores import ScoreFigures, figures_of
from models.errors import ConfigurationError
from models.events import Position, Role, TopicChanged, Turn
from models.policy import Policy
from models.session.fold import SessionState, fold
from models.wire.arrival import SessionInput
from streams.ports import Embedder, Vectors

SESSION_ID: Final = "eval"
_BETWEEN_TURNS = timedelta(seconds=30)
_COMES_TO = frozenset({"started", "returned", "unpacked"})
"""Causes after which a topic is the active one."""

DIALOGUES_PER_SESSION = 5
STRETCH_TURNS = 24
"""Longest stretch of one dialogue: a topic is compacted within it, and none outweighs the others."""
_MIN_USER_TURNS = 4
"""Two in either part."""


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
    return Mixed(mixed, embedder.embed(list(rows)))


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


def count_pairs(sessions: Iterable[tuple[Sequence[Hashable], Sequence[Hashable]]]) -> ScoreFigures:
    """Pairs in one topic against pairs of one dialogue; of each session the topics and dialogues of its messages.

    >>> count_pairs([(["a", "a", "b"], [1, 1, 1])])
    ScoreFigures(precision=1.0, recall=0.3333333333333333, f1=0.5, gold=3, found=1)
    """
    counts = [(_pairs(zip(*each, strict=True)), _pairs(each[1]), _pairs(each[0])) for each in sessions]
    right, belonging, together = (sum(each[n] for each in counts) for n in range(3))
    return figures_of(right, gold=belonging, found=together)


def _pairs(labels: Iterable[Hashable]) -> int:
    return sum(comb(count, 2) for count in Counter(labels).values())


def inputs_of(session: MixedSession, vectors: Vectors) -> list[SessionInput]:
    """A session's turns as the fold takes them, half a minute apart."""
    inputs = []
    for number, (turn, row) in enumerate(zip(session.turns, session.vectors, strict=True)):
        at = BEGINS + number * _BETWEEN_TURNS
        event = msgspec.structs.replace(turn, session_id=SESSION_ID, turn=number, timestamp=at, metadata=None)
        vector = vectors[row] if row >= 0 else None
        inputs.append(SessionInput(event, Position("turns", 0, number), at, None, vector))
    return inputs


def match(inputs: Sequence[SessionInput], places: Sequence[int], policy: Policy) -> list[str]:
    """Fold a session and follow its topic events.

    Returns:
        The topic of each of these turns.
    """
    state: SessionState | None = None
    active, joined = "", list[str]()
    for item in inputs:
        state, outputs = fold(state, item, policy)
        for event in outputs:
            if not isinstance(event, TopicChanged):
                continue
            if event.cause in _COMES_TO:
                active = event.topic_id
        joined.append(active)
    return [joined[place] for place in places]
