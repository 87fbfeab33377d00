"""Everything that is archived of many days: generated turns, and what the real folds say of them.

Sessions are laid out as arrays: how long each is, whose, when each turn comes, and how its risk goes. Their texts are
as long and as wordy as people's, drawn a million words at a time: words follow Zipf's law, a quarter of them are those
of what the session is about, so that text repeats itself about as much as conversations do, and frequent words are
short. Risk and embeddings are given; sessions and users are folded as their roles fold them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from jobs.lab.bench.folds import InMemory, time_fold
from models.entities import REGISTRY, TOPIC_OF
from models.events import CommandEvent, DeadLetter, OutputEvent, Position, Role, SessionEnded, Turn
from models.events.topics import COMMANDS, TURNS, Topic
from models.partition.commands import MemoryPartitionFold
from models.partition.sessions import DecodedArrival
from models.policy import Policy
from models.wire.arrival import Command
from models.wire.codec import encode
from models.wire.envelope import key_of

START = datetime(2026, 1, 5, tzinfo=UTC)
APPS = ("support", "tutor", "assistant", "writing", "planner")
_APP_SHARES = (0.35, 0.25, 0.2, 0.12, 0.08)
_SPREAD = 1.5
"""Of the logarithm of a session's length: half of the sessions have less than a third of the mean."""
_LONGEST_SHARE = 20
"""The longest session has so many times the mean."""
_SESSIONS_PER_USER = 4
_GAP_S, _GAP_SPREAD, _PAUSE_S, _PAUSE_SHARE = 20.0, 0.9, 1_500.0, 0.01
"""Between turns; pauses are shorter than the time-out, so that a session is one episode."""
_DAY_S = 86_400

CALM, RISING, STEP, SPIKE, WAVE = range(5)
_SHAPE_SHARES = (0.86, 0.05, 0.03, 0.04, 0.02)
_STEP_AT, _SPIKE_HALF, _WAVES = 0.6, 0.03, 20
"""In shares of the session; a wave's radians over it."""
_HIGH_EVERY = 12
"""Every twelfth session that is not calm goes all the way: an alert in one session of a hundred."""


class ArchiveSize(Struct, frozen=True):
    """How much is made.

    Attributes:
        sessions: Sessions.
        turns_per_session: Their mean.
        days: Days in which they begin.
        seed: The same seed, the same events.
    """

    sessions: int = 50_000
    turns_per_session: int = 400
    days: int = 28
    seed: int = 0

    @property
    def turns(self) -> int:
        """About so many are made."""
        return self.sessions * self.turns_per_session


class SessionColumns(Struct, frozen=True):
    """What is fixed of each session, `(n_sessions,)`, and of each turn in the order of time, `(n_turns,)`.

    Attributes:
        lengths: Turns of the session.
        users: Number of its user.
        apps: Index into `APPS`.
        of: Whose turn it is.
        turns: Its number in the session.
        times_us: When, microseconds since 1970.
        risk: 0-1.
    """

    lengths: NDArray[np.int64]
    users: NDArray[np.int64]
    apps: NDArray[np.int64]
    of: NDArray[np.int32]
    turns: NDArray[np.int32]
    times_us: NDArray[np.int64]
    risk: NDArray[np.float32]


def plan(size: ArchiveSize) -> SessionColumns:
    """Lay out all sessions, seeded."""
    rng, n = np.random.default_rng(size.seed), size.sessions
    drawn = rng.lognormal(0.0, _SPREAD, n)
    drawn = np.minimum(drawn / drawn.mean(), _LONGEST_SHARE)
    lengths: NDArray[np.int64] = np.maximum(2, drawn / drawn.mean() * size.turns_per_session).astype(np.int64)
    shapes = rng.choice(len(_SHAPE_SHARES), n, p=_SHAPE_SHARES)
    of, before = np.repeat(np.arange(n, dtype=np.int32), lengths), np.cumsum(lengths) - lengths
    turns = (np.arange(len(of)) - before[of]).astype(np.int32)
    # Most sessions begin in the middle of the day.
    begun_s = rng.integers(0, size.days, n) * _DAY_S + rng.normal(13.5, 3.5, n) % 24 * 3_600
    gaps_s = rng.lognormal(np.log(_GAP_S), _GAP_SPREAD, len(of))
    gaps_s += np.where(rng.random(len(of)) < _PAUSE_SHARE, rng.uniform(0, _PAUSE_S, len(of)), 0)
    spent_s = np.cumsum(gaps_s)
    seconds = int(START.timestamp()) + begun_s[of] + spent_s - spent_s[before][of]
    level = _level(shapes[of], turns / lengths[of], of)
    risk = np.clip(level + rng.normal(0, 0.04, len(of)), 0, 1).astype(np.float32)
    order = np.argsort(seconds, kind="stable")
    return SessionColumns(
        lengths=lengths,
        users=rng.integers(0, max(1, n // _SESSIONS_PER_USER), n),
        apps=rng.choice(len(APPS), n, p=_APP_SHARES),
        of=of[order],
        turns=turns[order],
        times_us=(seconds[order] * 1_000_000).astype(np.int64),
        risk=risk[order],
    )


def _level(shape: NDArray[np.int64], done: NDArray[np.float64], of: NDArray[np.int32]) -> NDArray[np.float64]:
    """Risk without its noise; `done` is the share of the session that is behind."""
    calm = 0.06 + 0.1 * ((of * 7_919) % 101) / 101
    # Few of those that are not calm go all the way.
    height = np.where(of % _HIGH_EVERY == 0, 0.8, 0.35)
    rise = np.select(
        [shape == RISING, shape == STEP, shape == SPIKE, shape == WAVE],
        [done, done > _STEP_AT, np.abs(done - 0.5) < _SPIKE_HALF, 0.5 - 0.5 * np.cos(done * _WAVES)],
        0.0,
    )
    level: NDArray[np.float64] = np.clip(calm + height * rise, 0, 1)
    return level


VOCABULARY = 20_000
_ZIPF_EXPONENT = 1.05
_DRAWS = 1 << 20
"""Cells of the table by which a number becomes a word."""
_SUBJECT_WORDS = 24
_SUBJECT_SHARE = 0.25
_SENTENCE_WORDS = 12
_ONSETS = ("b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr", "pl", "ch", "sh")
_VOWELS, _CODAS = "aeiou", ("", "n", "r", "s", "t")

_Words = NDArray[np.int64]


def _vocabulary() -> list[str]:
    """Distinct words, the most frequent first: of one syllable, then of two, then of three."""
    syllables = [onset + vowel + coda for vowel in _VOWELS for coda in _CODAS for onset in _ONSETS]
    count = len(syllables)
    pairs = [syllables[n % count] + syllables[(n * 7 + n // count) % count] for n in range(VOCABULARY // 4)]
    triples = [pair + syllables[(n * 11 + 3) % count] for n, pair in enumerate(pairs * 4)]
    return list(dict.fromkeys((*syllables, *pairs, *triples)))[:VOCABULARY]


class Text:
    """Makes the texts of many turns at once."""

    def __init__(self) -> None:
        plain = _vocabulary()
        self.words = plain
        shares = 1.0 / np.arange(1, len(plain) + 1) ** _ZIPF_EXPONENT
        counts = np.cumsum(shares / shares.sum()) * _DRAWS
        self._drawn: _Words = np.minimum(np.searchsorted(counts, np.arange(_DRAWS)), len(plain) - 1)
        forms = [f"{word} " for word in plain], [f"{word.capitalize()} " for word in plain], [f"{w}. " for w in plain]
        self._forms = np.array([form for each in forms for form in each], dtype=object)

    def subject(self, session: int) -> list[str]:
        """Words that a session is about."""
        return [self.words[n] for n in self._subject_words(np.full(5, session), np.arange(5))]

    def texts(self, sessions: _Words, lengths: _Words, rng: np.random.Generator) -> list[str]:
        """One text for each session number, of so many words.

        Args:
            sessions: Whose turn it is, `(n_turns,)`.
            lengths: Words, at least 1, `(n_turns,)`.
            rng: The randomness.
        """
        ends = np.cumsum(lengths)
        total = int(ends[-1])
        place = np.arange(total) - np.repeat(ends - lengths, lengths)
        words = self._drawn[rng.integers(0, _DRAWS, total)]
        about = np.flatnonzero(rng.random(total, dtype=np.float32) < _SUBJECT_SHARE)
        of = np.repeat(sessions, lengths)[about]
        words[about] = self._subject_words(of, rng.integers(0, _SUBJECT_WORDS, len(about)))
        in_sentence = place % _SENTENCE_WORDS
        words[in_sentence == 0] += len(self.words)
        words[in_sentence == _SENTENCE_WORDS - 1] += 2 * len(self.words)
        drawn = self._forms[words].tolist()
        return ["".join(drawn[first:end]).rstrip() for first, end in pairwise((0, *ends.tolist()))]

    def _subject_words(self, sessions: _Words, numbers: _Words) -> _Words:
        # Any mixing will do: what matters is that a session has the same few each time.
        mixed: _Words = (sessions * 2_654_435_761 + numbers * 40_503 + (sessions * numbers) * 97) % len(self.words)
        return mixed


PREFIX = "bench"
PARTITIONS = 12
CHUNK_TURNS = 24_000
FETCHED_RECORDS = 1_000
"""At most so many come with one poll."""
FACT_TURNS, TOPIC_TURNS = 100, 12
"""A user says something of himself in one turn of so many, and comes to speak of something else after so many."""
_ARRIVES_AFTER_MS = 150
_USER_WORDS, _ASSISTANT_WORDS = (20, 60), (60, 200)
_VECTORS, _DIMENSIONS = 512, 256


class ArchiveRecord(NamedTuple):
    """What the archive reads of a consumer's record."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes


class Fetched(NamedTuple):
    """Records of one partition of a topic, named as in `models.events.topics`, in order."""

    topic: str
    partition: int
    records: list[ArchiveRecord]


class Chunk(NamedTuple):
    """Polls of one stretch of time, how many turns are in them, and the bytes of all values."""

    fetched: list[Fetched]
    turns: int
    json_bytes: int


class _Partition:
    """A partition of all topics on its way: what was appended, and the folds of its sessions and users."""

    def __init__(self, number: int) -> None:
        policy = Policy()
        self.number = number
        self.arrivals: list[DecodedArrival] = []
        self._sessions, self._users = InMemory(policy), InMemory(policy, kind=MemoryPartitionFold)
        self._next: dict[str, int] = {}
        self._records: dict[str, list[ArchiveRecord]] = {}

    def say(
        self, event: Turn | SessionEnded, risk: float | None = None, vector: NDArray[np.float32] | None = None
    ) -> None:
        """Append an input event, to be folded with the others of the chunk."""
        position, at = self._put(TURNS, event.session_id.encode(), event)
        self.arrivals.append(DecodedArrival(event, position, at, risk, vector))

    def fold(self) -> list[Fetched]:
        """Fold what was said into sessions, what they forward into users; everything as a consumer gets it."""
        _, emitted = time_fold(self._sessions, self.arrivals)
        _, of_users = time_fold(self._users, [command for event in emitted for command in self._take(event)])
        for event in of_users:
            self._take(event)
        records, self._records, self.arrivals = self._records, {}, []
        return [
            Fetched(name, self.number, taken[first : first + FETCHED_RECORDS])
            for name, taken in records.items()
            for first in range(0, len(taken), FETCHED_RECORDS)
        ]

    def _take(self, event: OutputEvent) -> list[Command]:
        """Append an output where it is archived; a command to be folded is given back."""
        topic = TOPIC_OF[type(event)]
        if topic not in REGISTRY.archived_topics or isinstance(event, DeadLetter):
            return []
        position, at = self._put(topic, key_of(event), event)
        return [Command(event, position, at)] if topic is COMMANDS and isinstance(event, CommandEvent) else []

    def _put(self, topic: Topic, key: bytes | None, event: Any) -> tuple[Position, datetime]:
        """Append a record; gives its place and the time of its arrival."""
        at_ms, offset = round(event.timestamp.timestamp() * 1_000) + _ARRIVES_AFTER_MS, self._next.get(topic.name, 0)
        self._next[topic.name] = offset + 1
        self._records.setdefault(topic.name, []).append(ArchiveRecord(self.number, offset, at_ms, key, encode(event)))
        return Position(f"{PREFIX}.{topic.name}", self.number, offset), datetime.fromtimestamp(at_ms / 1_000, UTC)


class ArchiveTraffic:
    """Makes everything that is archived, in the order of time. Of one size and seed always the same.

    Args:
        size: How much.
    """

    def __init__(self, size: ArchiveSize) -> None:
        self._sessions = plan(size)
        self._rng = np.random.default_rng(size.seed + 1)
        self._text = Text()
        self._partitions = [_Partition(number) for number in range(PARTITIONS)]
        self._hexes = [f"{n:016x}" for n in self._rng.integers(0, 1 << 62, size.sessions).tolist()]
        drawn = self._rng.standard_normal((_VECTORS, _DIMENSIONS)).astype(np.float32)
        self._vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    def chunks(self) -> Iterator[Chunk]:
        """Everything."""
        turns = len(self._sessions.of)
        for first in range(0, turns, CHUNK_TURNS):
            yield self._chunk(slice(first, min(first + CHUNK_TURNS, turns)))

    def _chunk(self, part: slice) -> Chunk:
        sessions = self._sessions
        columns = (each[part].tolist() for each in (sessions.of, sessions.turns, sessions.times_us, sessions.risk))
        for of, number, time_us, risk, content in zip(*columns, self._contents(part), strict=True):
            turn = self._turn(of, number, time_us, content)
            partition, by_user = self._partitions[sessions.users[of] % PARTITIONS], turn.role is Role.USER
            vector = self._vectors[(of * 7 + number // TOPIC_TURNS) % _VECTORS]
            partition.say(turn, risk if by_user else None, vector if by_user else None)
            if number == sessions.lengths[of] - 1:
                partition.say(SessionEnded(session_id=turn.session_id, timestamp=turn.timestamp))
        fetched = [poll for partition in self._partitions for poll in partition.fold()]
        json_bytes = sum(len(record.value) for poll in fetched for record in poll.records)
        return Chunk(fetched, part.stop - part.start, json_bytes)

    def _contents(self, part: slice) -> list[str]:
        of, turns = self._sessions.of[part].astype(np.int64), self._sessions.turns[part]
        low, high = (
            np.where(turns % 2 == 0, user, other) for user, other in zip(_USER_WORDS, _ASSISTANT_WORDS, strict=True)
        )
        texts = self._text.texts(of, self._rng.integers(low, high), self._rng)
        for n in np.flatnonzero(turns % FACT_TURNS == FACT_TURNS // 4 - 1).tolist():
            texts[n] = f"I prefer {self._text.subject(int(of[n]))[0]}. {texts[n]}"
        return texts

    def _turn(self, of: int, number: int, time_us: int, content: str) -> Turn:
        return Turn(
            session_id=self._hexes[of],
            user_id=f"user-{self._sessions.users[of]}",
            app_id=APPS[self._sessions.apps[of]],
            turn=number,
            role=Role.USER if number % 2 == 0 else Role.ASSISTANT,
            content=content,
            timestamp=datetime.fromtimestamp(time_us // 1_000_000, UTC).replace(microsecond=time_us % 1_000_000),
        )
