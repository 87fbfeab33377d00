"""Exact turns of a whole session, for a language model that makes a memory of it (app memory, Memory Creation).

A part for each segment, written once: of the last turns as many as `apps.asked_tokens` allow. They are kept while the
session is open, and only where a model is asked. So they are there at its end whatever an index or an archive holds by
then, a replay sees the same, and they go with the state of an erased session.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from models.events import Role
from models.policy.app import AppPolicy
from models.state.buffer import BufferedTurn
from models.state.parts import Parts
from models.text.words import estimate_tokens, latest_that_fit

PREFIX = "x"


class ExactTurn(NamedTuple):
    """A turn as it was said, a long one cut."""

    turn: int
    role: Role
    content: str


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[ExactTurn]).decode


class ExactTurns:
    """The turns, in parts of a session's state; changed in place."""

    def __init__(self, parts: Parts, policy: AppPolicy) -> None:
        self._parts = parts
        self._policy = policy

    def add(self, turns: Sequence[BufferedTurn]) -> None:
        """Keep a segment's turns, ordered by number; the oldest segments go once the later ones fill the budget."""
        cut = [ExactTurn(turn.turn, turn.role, self._cut(turn.content)) for turn in turns]
        self._put(f"{PREFIX}{cut[0].turn}", self._fitting(cut))
        left = self._policy.asked_tokens
        for name in reversed(self._names()):
            if left <= 0:
                self._parts.drop(name)
            left -= sum(estimate_tokens(turn.content) for turn in self._read(name))

    def replace_text(self, turn: int, content: str) -> None:
        """Put the text of a turn right, if it is kept."""
        for name in self._names():
            turns = self._read(name)
            if any(kept.turn == turn for kept in turns):
                right = [kept._replace(content=self._cut(content)) if kept.turn == turn else kept for kept in turns]
                self._put(name, right)

    def all(self) -> list[ExactTurn]:
        """In order of turn, as many as fit."""
        return self._fitting(sorted(turn for name in self._names() for turn in self._read(name)))

    def _cut(self, content: str) -> str:
        return content[: self._policy.asked_turn_chars]

    def _fitting(self, turns: Sequence[ExactTurn]) -> list[ExactTurn]:
        return latest_that_fit(turns, self._policy.asked_tokens, lambda turn: estimate_tokens(turn.content))

    def _names(self) -> list[str]:
        return sorted(self._parts.names(PREFIX), key=lambda name: int(name[len(PREFIX) :]))

    def _read(self, name: str) -> list[ExactTurn]:
        data = self._parts.get(name)
        return [] if data is None else _decode(data)

    def _put(self, name: str, turns: Sequence[ExactTurn]) -> None:
        self._parts.put(name, _encode(turns))
