"""Conversations by seed: harmless sentences, risk from upstream in every third session, and all kinds of disorder.

A user talks in several sessions at once, which are on different partitions, and tells about themselves now and then;
several apps have users of the same name.
"""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from models.events import MAX_CONTENT_BYTES, Role, SessionEnded, Turn
from models.wire.codec import encode
from streams.kafka.producer import Record

CONCURRENT_SESSIONS = 40
_TURNS = (12, 90)
_TELLING = 0.2
_APPS, _USERS = 3, 5
"""Each app has so many users: of the sessions that go on at the same time two or three are one user's."""
_SAID = msgspec.toml.decode((Path(__file__).parent / "said.toml").read_bytes(), type=dict[str, list[str]])
"""`asks` and `tells` of users, `answers` of the assistant."""
_DUPLICATE, _OUT_OF_ORDER, _LATE, _POISON, _OVERSIZE = 0.02, 0.02, 0.01, 0.01, 0.0005
_AT_MOST_BEHIND = 8
"""An out-of-order turn comes after up to so many of its followers; a late one after its session's end."""


class Sent(NamedTuple):
    """A record to send; `turn` is its session and number if it is a good turn."""

    record: Record
    turn: tuple[str, int] | None = None


def _said(rng: random.Random) -> str:
    return rng.choice(_SAID["tells" if rng.random() < _TELLING else "asks"])


class _Session:
    def __init__(self, number: int, rng: random.Random) -> None:
        self.session_id = f"s-{number}"
        self.app_id = f"app-{number % _APPS}"
        self.number = number
        self.length = rng.randint(*_TURNS)
        self.next = 0
        self.behind: list[tuple[int, Sent]] = []
        self.late: list[Sent] = []

    def turn(self, rng: random.Random, at: datetime) -> Sent:
        """The next turn; every third session escalates."""
        user = self.next % 2 == 0
        turn = Turn(
            session_id=self.session_id,
            user_id=f"u-{self.number % _USERS}",
            app_id=self.app_id,
            turn=self.next,
            role=Role.USER if user else Role.ASSISTANT,
            content=_said(rng) if user else rng.choice(_SAID["answers"]),
            timestamp=at,
            risk=min(1.0, self.next / 40) if user and self.number % 3 == 0 else None,
        )
        self.next += 1
        return Sent(Record(self.session_id.encode(), encode(turn)), (self.session_id, turn.turn))

    def due(self, *, all_of_them: bool = False) -> Iterator[Sent]:
        """Turns that were held back and come now."""
        waiting, self.behind = self.behind, []
        for until, sent in waiting:
            if all_of_them or until <= self.next:
                yield sent
            else:
                self.behind.append((until, sent))


def traffic(seed: int, *, turns: int, ends_at: datetime, span: timedelta) -> Iterator[Sent]:
    """Interleaved sessions; the same for the same arguments.

    A fourth of the sessions end by an event, the others by silence. Some turns come twice, out of order or after the
    end; some records are poison.
    """
    rng = random.Random(f"traffic {seed}")  # noqa: S311 - repeatable, not secret
    running: list[_Session] = []
    begun = 0
    for n in range(turns):
        while len(running) < CONCURRENT_SESSIONS:
            running.append(_Session(begun, rng))
            begun += 1
        at = ends_at - span + span * (n / turns)
        session = rng.choice(running)
        yield from _one_turn(session, rng, at)
        if session.next == session.length:
            running.remove(session)
            yield from _end(session, at)
    for session in running:
        yield from _end(session, ends_at)


def _one_turn(session: _Session, rng: random.Random, at: datetime) -> Iterator[Sent]:
    sent, fate = session.turn(rng, at), rng.random()
    if fate < _LATE:
        session.late.append(sent)
    elif fate < _LATE + _OUT_OF_ORDER:
        session.behind.append((session.next + rng.randint(1, _AT_MOST_BEHIND), sent))
    else:
        yield sent
        if rng.random() < _DUPLICATE:
            yield sent
    yield from session.due()
    if rng.random() < _POISON:
        yield Sent(_poison(session.session_id, rng, at))


def _end(session: _Session, at: datetime) -> Iterator[Sent]:
    yield from session.due(all_of_them=True)
    if session.number % 4 == 0:
        ended = SessionEnded(session_id=session.session_id, app_id=session.app_id, timestamp=at)
        yield Sent(Record(session.session_id.encode(), encode(ended)))
    yield from session.late


def _poison(session_id: str, rng: random.Random, at: datetime) -> Record:
    """A record that must become a dead letter."""
    key = session_id.encode()
    turn = Turn(
        session_id=session_id, user_id="u", app_id="a", turn=0, role=Role.USER, content="Good day.", timestamp=at
    )
    good = encode(turn)
    if rng.random() < _OVERSIZE / _POISON:
        return Record(key, good.replace(b"Good day.", b"x" * (MAX_CONTENT_BYTES + 1)))
    return rng.choice(
        (
            Record(key, b"{broken"),
            Record(key, b"\xff\xfe"),
            Record(key, None),
            Record(b"another-key", good),
            Record(None, good),
            Record(key, good.replace(b'"user"', b'"nobody"')),
            Record(key, good.replace(b'"turn":0', b'"turn":-1')),
            Record(key, good.replace(b'"timestamp":"2', b'"timestamp":"9')),
        )
    )
