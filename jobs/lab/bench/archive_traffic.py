"""Records as the archive role fetches them, for sessions that were laid out: turns, and what the roles say of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from jobs.lab.bench.archive_outputs import Course, told
from jobs.lab.bench.archive_sessions import APPS, Sessions, Size, plan
from jobs.lab.bench.archive_text import Text
from models.entities import TOPIC_OF
from models.events import Position, Role, SessionEnded, Turn
from models.events.base import OutputFields
from models.events.topics import TURNS, Topic
from models.wire.codec import encode
from models.wire.envelope import key_of

PREFIX = "bench"
PARTITIONS = 12
CHUNK_TURNS = 24_000
FETCHED_RECORDS = 1_000
"""At most so many come with one poll."""
_ARRIVES_AFTER_MS = 150
_USER_WORDS, _ASSISTANT_WORDS = (20, 60), (60, 200)
_UUID = (8, 12, 16, 20, 32)


class Record(NamedTuple):
    """What the archive reads of a consumer's record."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class Fetched(NamedTuple):
    """Records of one partition, in order."""

    topic: str
    """Name of the topic, as in `models.events.topics`."""
    partition: int
    records: list[Record]


class Chunk(Struct, frozen=True):
    """What came in during one stretch of time.

    Attributes:
        fetched: Polls, as a consumer has them.
        turns: How many turns are among the records.
        json_bytes: Of all values.
    """

    fetched: list[Fetched]
    turns: int
    json_bytes: int


class _Log:
    """Records on their way into topics.

    Args:
        next_offsets: Of each partition of each topic; moved on.
    """

    def __init__(self, next_offsets: dict[tuple[str, int], int]) -> None:
        self.at_ms = 0
        self.partition = 0
        self._next = next_offsets
        self._records: dict[tuple[str, int], list[Record]] = {}

    def put(self, topic: Topic, key: bytes | None, event: Struct) -> int:
        """Append; returns the offset."""
        place = (topic.name, self.partition)
        offset = self._next.get(place, 0)
        self._next[place] = offset + 1
        record = Record(self.partition, offset, self.at_ms, key, encode(event))
        self._records.setdefault(place, []).append(record)
        return offset

    def fetched(self) -> list[Fetched]:
        """As a consumer gets them."""
        return [
            Fetched(name, partition, taken[first : first + FETCHED_RECORDS])
            for (name, partition), taken in self._records.items()
            for first in range(0, len(taken), FETCHED_RECORDS)
        ]


class Traffic:
    """Makes everything that is archived, in the order of time. Of one size and seed always the same.

    Args:
        size: How much.
    """

    def __init__(self, size: Size) -> None:
        self._sessions = plan(size)
        self._rng = np.random.default_rng(size.seed + 1)
        self._text = Text()
        self._courses: dict[int, Course] = {}
        self._next: dict[tuple[str, int], int] = {}
        self._hexes = [f"{n:016x}" for n in self._rng.integers(0, 1 << 62, size.sessions).tolist()]

    @property
    def turns(self) -> int:
        """How many there are."""
        return len(self._sessions.of)

    def chunks(self) -> Iterator[Chunk]:
        """Everything."""
        for first in range(0, self.turns, CHUNK_TURNS):
            yield self._chunk(self._sessions, slice(first, min(first + CHUNK_TURNS, self.turns)))

    def _chunk(self, sessions: Sessions, part: slice) -> Chunk:
        log, ids = _Log(self._next), self._ids()
        rows = zip(
            sessions.of[part].tolist(),
            sessions.turns[part].tolist(),
            sessions.times_us[part].tolist(),
            sessions.risk[part].tolist(),
            sessions.level[part].tolist(),
            self._contents(part),
            strict=True,
        )
        for of, number, time_us, risk, level, content in rows:
            turn = self._turn(of, number, time_us, content)
            log.at_ms, log.partition = time_us // 1_000 + _ARRIVES_AFTER_MS, of % PARTITIONS
            key = turn.session_id.encode()
            source = Position(f"{PREFIX}.{TURNS.name}", log.partition, log.put(TURNS, key, turn))
            for event in self._follow(of, turn, (risk, level), source, ids):
                topic = TOPIC_OF[type(event)]
                log.put(topic, key if topic is TURNS else key_of(event), event)  # type: ignore[arg-type]
        fetched = log.fetched()
        json_bytes = sum(len(record.value or b"") for poll in fetched for record in poll.records)
        return Chunk(fetched, part.stop - part.start, json_bytes)

    def _contents(self, part: slice) -> list[str]:
        of, turns = self._sessions.of[part].astype(np.int64), self._sessions.turns[part]
        low, high = (
            np.where(turns % 2 == 0, user, other) for user, other in zip(_USER_WORDS, _ASSISTANT_WORDS, strict=True)
        )
        return self._text.texts(of, self._rng.integers(low, high), self._rng)

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

    def _follow(
        self, of: int, turn: Turn, risk_and_level: tuple[float, float], source: Position, ids: Iterator[str]
    ) -> Iterator[Struct]:
        course = self._courses.get(of)
        if course is None:
            course = self._courses[of] = Course(self._text.subject(of), turn.timestamp)
        if turn.role is Role.USER:
            course.see(turn, *risk_and_level)
        last = turn.turn == self._sessions.lengths[of] - 1
        said: OutputFields = {
            "id": "",
            "session_id": turn.session_id,
            "user_id": turn.user_id,
            "app_id": turn.app_id,
            "timestamp": turn.timestamp,
            "source": source,
        }
        yield from told(course, turn, risk_and_level[1], said, ids, last=last)
        if last:
            del self._courses[of]
            yield SessionEnded(session_id=turn.session_id, timestamp=turn.timestamp)

    def _ids(self) -> Iterator[str]:
        """Ids like those of outputs: UUIDs."""
        while True:
            drawn = self._rng.bytes(16 * CHUNK_TURNS).hex()
            for at in range(0, len(drawn), 32):
                a, b, c, d, e = _UUID
                each = drawn[at : at + e]
                yield f"{each[:a]}-{each[a:b]}-{each[b:c]}-{each[c:d]}-{each[d:]}"
