"""Everything that is archived of many days: made-up turns, and the outputs of the real folds.

Sessions are interleaved as in the other benchmarks; many are short and few long. Their texts are as long and as wordy
as people's: words follow Zipf's law, a quarter of them are those of the session's subject, so that text repeats itself
about as much as conversations do, and frequent words are short. Risk and embeddings are given; sessions and users are
folded as their roles fold them.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, islice, pairwise, product
from typing import Any, NamedTuple

import numpy as np
from aiokafka.structs import ConsumerRecord
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from jobs.lab.bench.folds import SESSIONS_AT_ONCE, InMemory, TurnTraffic, conversation_of, record_of, time_fold
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
PREFIX = "bench"
PARTITIONS = 12
CHUNK_EVENTS = 24_000
FETCHED_RECORDS = 1_000
"""At most so many come with one poll."""
FACT_TURNS, TOPIC_TURNS = 100, 12
"""A user tells a fact of himself in one turn of so many, and changes the subject after so many."""
_APPS = {"support": 0.35, "tutor": 0.25, "assistant": 0.2, "writing": 0.12, "planner": 0.08}
_SHAPES = {(0.0, 0.0): 0.86, (0.0, 1.0): 0.05, (0.0, 0.0, 0.0, 1.0, 1.0): 0.03,
           (*[0.0] * 15, 1.0, *[0.0] * 15): 0.04, (0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0): 0.02}  # fmt: skip
"""Course of the risk over a session, at equal distances → share of the sessions: calm, rising, step, spike, wave."""
_SPREAD = 1.5
"""Of the logarithm of a session's length: half of the sessions have less than a third of the mean."""
_LONGEST_SHARE = 20
"""The longest session has so many times the mean."""
_LENGTHS = 4_000
"""Different sessions; more have the lengths and courses of these again, with other words."""
_SESSIONS_PER_USER = 4
_HIGH_EVERY = 12
"""Every twelfth session that is not calm goes all the way: an alert in one session of a hundred."""
_ARRIVES_AFTER_MS = 150
_WORDS = {Role.USER: (20, 60), Role.ASSISTANT: (60, 200)}
_VECTORS, _DIMENSIONS = 512, 256
_MIXED, _ID_BITS = 0x9E3779B97F4A7C15, 64
"""Session ids are as hard to compress as random ones."""
_VOCABULARY, _ZIPF_EXPONENT = 20_000, 1.05
_SUBJECT_WORDS, _SUBJECT_SHARE, _SENTENCE_WORDS = 24, 0.25, 12

_Numbers = NDArray[np.int64]


class ArchiveSize(Struct, frozen=True):
    """About so many sessions of so many turns in the mean, over days; of the same seed the same events."""

    sessions: int = 50_000
    turns_per_session: int = 400
    days: int = 28
    seed: int = 0

    @property
    def turns(self) -> int:
        """Turns of all sessions."""
        return self.sessions * self.turns_per_session


class Fetched(NamedTuple):
    """Records of one partition of a topic, named as in `models.events.topics`, in order."""

    topic: str
    partition: int
    records: list[ConsumerRecord]


class Chunk(NamedTuple):
    """Polls of one stretch of time, how many turns are in them, and the bytes of all values."""

    fetched: list[Fetched]
    turns: int
    json_bytes: int


class _Text:
    """Makes the texts of many turns at once."""

    def __init__(self) -> None:
        syllables = ["".join(pair) for pair in product("bcdfghlmnprstvw", "aeiou")]
        words = ("".join(word) for length in count(1) for word in product(syllables, repeat=length))
        self._plain = list(islice(words, _VOCABULARY))
        forms = [(f"{word} ", f"{word.capitalize()} ", f"{word}. ") for word in self._plain]
        self._forms = np.array(forms, dtype=object)
        self._shares = np.cumsum(1.0 / np.arange(1, _VOCABULARY + 1) ** _ZIPF_EXPONENT)

    def preference(self, session: int) -> str:
        """A sentence in which a user tells a fact, about the subject of the session."""
        return f"I prefer {self._plain[int(self._subject(np.array([session]), np.array([0]))[0])]}. "

    def texts(self, sessions: _Numbers, lengths: _Numbers, rng: np.random.Generator) -> list[str]:
        """One text for each turn, of sessions `(n_turns,)` and with so many words, at least one, `(n_turns,)`."""
        ends = np.cumsum(lengths)
        place = (np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)) % _SENTENCE_WORDS
        words = np.searchsorted(self._shares, rng.random(len(place)) * self._shares[-1])
        about = np.flatnonzero(rng.random(len(place)) < _SUBJECT_SHARE)
        words[about] = self._subject(np.repeat(sessions, lengths)[about], rng.integers(0, _SUBJECT_WORDS, len(about)))
        drawn = self._forms[words, np.select([place == 0, place == _SENTENCE_WORDS - 1], [1, 2])].tolist()
        return ["".join(drawn[first:end]).rstrip() for first, end in pairwise((0, *ends.tolist()))]

    def _subject(self, sessions: _Numbers, numbers: _Numbers) -> _Numbers:
        # Any mixing will do: a session must have the same few words each time.
        mixed: _Numbers = (sessions * 2_654_435_761 + numbers * 40_503 + sessions * numbers * 97) % _VOCABULARY
        return mixed


class _Partition:
    """A partition of all topics on its way: appended records, and the folds of its sessions and users."""

    def __init__(self, number: int) -> None:
        policy = Policy()
        self.number = number
        self.arrivals: list[DecodedArrival] = []
        self._sessions, self._users = InMemory(policy), InMemory(policy, kind=MemoryPartitionFold)
        self._next: dict[str, int] = {}
        self._records: dict[str, list[ConsumerRecord]] = {}

    def say(self, event: Turn | SessionEnded, risk: float | None, vector: NDArray[np.float32] | None) -> None:
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
        name = f"{PREFIX}.{topic.name}"
        record = record_of(name, offset, at_ms, key, encode(event), self.number)
        self._records.setdefault(topic.name, []).append(record)
        return Position(name, self.number, offset), datetime.fromtimestamp(at_ms / 1_000, UTC)


class ArchiveTraffic:
    """Makes everything that is archived, in the order of time. Of one size and seed always the same.

    Attributes:
        lengths: Turns of the sessions, again and again, `(n_sessions,)`.
    """

    def __init__(self, size: ArchiveSize) -> None:
        self._size, self._rng = size, np.random.default_rng(size.seed)
        sessions = min(size.sessions, _LENGTHS)
        drawn = self._rng.lognormal(0.0, _SPREAD, sessions)
        drawn = np.minimum(drawn / drawn.mean(), _LONGEST_SHARE)
        self.lengths = np.maximum(2, drawn / drawn.mean() * size.turns_per_session).astype(np.int64)
        apps = self._rng.choice(list(_APPS), sessions, p=list(_APPS.values())).tolist()
        self._sessions = [
            conversation_of(app, [{Role.ASSISTANT if n % 2 else Role.USER: ""} for n in range(length)])
            for app, length in zip(apps, self.lengths.tolist(), strict=True)
        ]
        self._shapes = self._rng.choice(len(_SHAPES), sessions, p=list(_SHAPES.values()))
        at = np.linspace(0, 1, 101)
        self._courses = np.array([np.interp(at, np.linspace(0, 1, len(shape)), shape) for shape in _SHAPES])
        self._text, self._partitions = _Text(), [_Partition(number) for number in range(PARTITIONS)]
        vectors = self._rng.standard_normal((_VECTORS, _DIMENSIONS)).astype(np.float32)
        self._vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def chunks(self) -> Iterator[Chunk]:
        """Everything."""
        span, at_once = timedelta(days=self._size.days), min(SESSIONS_AT_ONCE, -(-self._size.sessions // 10))
        traffic = TurnTraffic(self._size.seed, self._sessions, at_once=at_once)
        events = traffic.events(self._size.turns, ends_at=START + span, spacing=span / self._size.turns)
        while part := list(islice(events, CHUNK_EVENTS)):
            yield self._chunk(part)

    def _chunk(self, part: Sequence[Turn | SessionEnded]) -> Chunk:
        turns = [event for event in part if isinstance(event, Turn)]
        of, numbers = (np.array([pair[n] for pair in map(_place, turns)]) for n in (0, 1))
        risks, contents = self._risks(of, numbers).tolist(), self._contents(turns, of)
        said = zip(risks, contents, strict=True)
        for event in part:
            session, number = _place(event)
            user = session // _SESSIONS_PER_USER
            named = f"{(session + 1) * _MIXED % (1 << _ID_BITS):016x}"
            risk, vector, changed = None, None, replace(event, session_id=named)
            if isinstance(changed, Turn):
                risk, content = next(said)
                changed = replace(changed, user_id=f"user-{user}", content=content)
                if changed.role is Role.USER:
                    vector = self._vectors[(session * 7 + number // TOPIC_TURNS) % _VECTORS]
            self._partitions[user % PARTITIONS].say(changed, None if vector is None else risk, vector)
        fetched = [poll for partition in self._partitions for poll in partition.fold()]
        return Chunk(fetched, len(turns), sum(len(record.value) for poll in fetched for record in poll.records))

    def _risks(self, of: _Numbers, numbers: _Numbers) -> NDArray[np.float64]:
        kind = of % len(self.lengths)
        done = (100 * numbers / self.lengths[kind]).astype(np.int64)
        # Few of those that are not calm go all the way.
        height = np.where(of % _HIGH_EVERY == 0, 0.8, 0.35)
        level = 0.06 + 0.1 * (of * 7_919 % 101) / 101 + height * self._courses[self._shapes[kind], done]
        risks: NDArray[np.float64] = np.clip(level + self._rng.normal(0, 0.04, len(of)), 0, 1)
        return risks

    def _contents(self, turns: Sequence[Turn], of: _Numbers) -> list[str]:
        low, high = np.array([_WORDS[turn.role] for turn in turns]).T
        texts = self._text.texts(of, self._rng.integers(low, high), self._rng)
        return [
            self._text.preference(session) + text if turn.turn % FACT_TURNS == FACT_TURNS // 4 - 1 else text
            for turn, session, text in zip(turns, of.tolist(), texts, strict=True)
        ]


def _place(event: Turn | SessionEnded) -> tuple[int, int]:
    """Numbers of the session and of the turn in it."""
    return int(event.session_id.rpartition("-")[2]), event.turn if isinstance(event, Turn) else 0
