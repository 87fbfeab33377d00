"""Real dialogues to measure topics on, and sessions made of them whose topics are known.

Dialogues come from files in any format that `turntide produce` reads, else from the demo. A session holds stretches of
several dialogues, each cut in two, said by one person in turn: two messages share a topic if they come from the same
dialogue.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import numpy as np
from msgspec import Struct

from jobs.demo.conversations import load_conversations, schedule
from jobs.produce.formats import Filling, InputConversation
from jobs.produce.formats.source import InputReading, InputSource
from models.errors import ConfigurationError
from models.events import Role, Turn
from streams.ports import Embedder, Vectors

BEGINS = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""Event time of dialogues without times: a fixed one, so that the same files give the same figures."""


class TopicDialogue(Struct, frozen=True):
    """One conversation, told apart from others by where it stands."""

    source: str
    user_id: str
    turns: Sequence[Turn]

    @property
    def user_turns(self) -> int:
        """Turns that are matched to topics."""
        return sum(turn.role is Role.USER for turn in self.turns)


def parse_conditions(conditions: Iterable[str]) -> dict[str, str]:
    """Read `name=value` pairs.

    Raises:
        ConfigurationError: One has no `=`.

    >>> parse_conditions(["label=benign"])
    {'label': 'benign'}
    """
    parsed = {}
    for condition in conditions:
        name, sign, value = condition.partition("=")
        if not sign:
            raise ConfigurationError(f"--where {condition}: write it as name=value, for instance label=benign")
        parsed[name] = value
    return parsed


def read_dialogues(files: Sequence[Path], where: Mapping[str, str]) -> list[TopicDialogue]:
    """Dialogues of all files in order, or the demo's where no file is given.

    Args:
        files: JSON Lines or arrays, each in a format of `jobs.produce.formats`.
        where: Fields that stand beside a dialogue and what they must be; files whose dialogues have none of these
            fields are taken as they are.

    Raises:
        ConfigurationError: A file cannot be read, or there is no dialogue in all of them.
    """
    if not files:
        return _demo()
    found = [dialogue for file in files for dialogue in _read(file, where)]
    if not found:
        raise ConfigurationError("no dialogue is left: look at the files and at --where")
    return found


def _read(file: Path, where: Mapping[str, str]) -> list[TopicDialogue]:
    filling = Filling(source=file.name.partition(".")[0] or "input", now=BEGINS, start=BEGINS, keep_metadata=True)
    try:
        with file.open("rb") as stream:
            return _of(stream, file.name, filling, where)
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror}") from error


def _of(stream: BinaryIO, name: str, filling: Filling, where: Mapping[str, str]) -> list[TopicDialogue]:
    source = InputSource(stream, InputReading(filling=filling, end_sessions=False))
    dialogues = []
    for item in source.items:
        if not isinstance(item, InputConversation):  # a line that cannot be read: `turntide produce` says which
            continue
        turns = [event for event in item.events if isinstance(event, Turn)]
        if turns and _meets(turns[0], where):
            dialogues.append(TopicDialogue(name, turns[0].user_id, turns))
    return dialogues


def _meets(turn: Turn, where: Mapping[str, str]) -> bool:
    beside = turn.metadata or {}
    return all(str(beside[name]) == value for name, value in where.items() if name in beside)


def _demo() -> list[TopicDialogue]:
    talks = load_conversations()
    turns: dict[str, list[Turn]] = {talk.session_id: [] for talk in talks}
    for event in (cue.event(BEGINS) for cue in schedule(talks)):
        if isinstance(event, Turn):
            turns[event.session_id].append(event)
    return [TopicDialogue("demo", talk.user_id, turns[talk.session_id]) for talk in talks]


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
