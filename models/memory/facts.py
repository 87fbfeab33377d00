"""Structured facts of a user: one active value for each category and key, with what was true before (seed 002).

| what is said | what happens |
|---|---|
| confidence or importance below the policy's | nothing: never stored |
| the same category and key again in one message | the surest counts, of equals the later |
| a new key | stored |
| the active value again | nothing, unless it is surer than stored: confirmed |
| another value, at least as sure as the stored one | updated; the old value becomes history, with its times |
| another value, less sure | nothing (seed 002, conflict resolution) |
| a correction ("my full name is …") | as if of confidence 1 |
| a retraction | the value is active no longer; it stays as history |
| a value after a retraction | stored, whatever the retracted one's confidence was |

Messages count in the order in which they arrive; one that was said earlier than the active value became valid makes
the next begin when it began, so that no two values of a key are ever valid at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

import msgspec
from msgspec import Struct

from models.errors import RecoveryFailed
from models.events import ExtractedFact, FactCategory, FactCause, PastFact, Retraction
from models.memory.parts import Parts
from models.user_policy import FactPolicy

PREFIX = "f:"
"""Of the parts that hold facts: one each."""


class Fact(Struct, frozen=True, array_like=True):
    """One fact of a user as the state keeps it. Fields as in `models.user_events.FactChanged`."""

    value: str
    confidence: float
    importance: float
    active: bool
    valid_from: datetime
    valid_until: datetime | None
    session_id: str
    turn: int
    extracted_by: str
    history: tuple[tuple[str, float, datetime, datetime], ...] = ()
    """Value, confidence, valid from, valid until; the oldest first."""

    def past(self) -> list[PastFact]:
        """The values before this one, as events tell them."""
        return [
            PastFact(value=value, confidence=confidence, valid_from=first, valid_until=last)
            for value, confidence, first, last in self.history
        ]


class FactChange(NamedTuple):
    """What became of one fact."""

    category: FactCategory
    key: str
    fact: Fact
    cause: FactCause


class Said(NamedTuple):
    """Where and when a fact was said, and who understood it."""

    at: datetime
    session_id: str
    turn: int
    extracted_by: str


_decode = msgspec.msgpack.Decoder(Fact).decode
_encode = msgspec.msgpack.Encoder().encode


class Facts:
    """The facts among a user's parts; changed in place.

    Args:
        parts: The user's.
        policy: Thresholds and bounds.
    """

    def __init__(self, parts: Parts, policy: FactPolicy) -> None:
        self._parts = parts
        self._policy = policy

    def get(self, category: FactCategory, key: str) -> Fact | None:
        """One fact, active or past."""
        data = self._parts.get(_part(category, key))
        return None if data is None else _read(data)

    def all(self) -> Iterator[tuple[FactCategory, str, Fact]]:
        """Every fact, active or past, by category and key."""
        for name in sorted(self._parts.names(PREFIX)):
            data = self._parts.get(name)
            assert data is not None, "a part that is named has bytes"  # noqa: S101
            category, key = name.removeprefix(PREFIX).split("/", 1)
            yield FactCategory(category), key, _read(data)

    def count_active(self) -> int:
        """How many are active."""
        return sum(fact.active for _, _, fact in self.all())

    def take(self, facts: Iterable[ExtractedFact], retractions: Iterable[Retraction], said: Said) -> list[FactChange]:
        """Take what one message says: what it takes back first, then what it says instead.

        Returns:
            What changed, in that order.
        """
        changes = [change for retraction in retractions for change in self._retract(retraction, said)]
        for extracted in _surest(facts, self._policy):
            change = self._store(extracted, said)
            if change is not None:
                changes.append(change)
        return changes + self._make_room(said) if changes else []

    def _store(self, extracted: ExtractedFact, said: Said) -> FactChange | None:
        category, key, value = extracted.category, extracted.key, extracted.value
        confidence = _confidence(extracted)
        stored = self.get(category, key)
        fresh = Fact(value, confidence, extracted.importance, True, said.at, None, *said[1:])
        if stored is None:
            return self._put(category, key, fresh, "stored")
        if not stored.active:
            begins = max(said.at, stored.valid_until or said.at)
            again = msgspec.structs.replace(fresh, valid_from=begins, history=self._history(stored, begins))
            return self._put(category, key, again, "stored")
        if stored.value.casefold() == value.casefold():
            return self._confirm(category, key, stored, fresh) if confidence > stored.confidence else None
        if confidence < stored.confidence:
            return None
        begins = max(said.at, stored.valid_from)
        update = msgspec.structs.replace(fresh, valid_from=begins, history=self._history(stored, begins))
        return self._put(category, key, update, "updated")

    def _confirm(self, category: FactCategory, key: str, stored: Fact, fresh: Fact) -> FactChange:
        surer = msgspec.structs.replace(
            fresh,
            importance=max(stored.importance, fresh.importance),
            valid_from=stored.valid_from,
            history=stored.history,
        )
        return self._put(category, key, surer, "confirmed")

    def _history(self, stored: Fact, until: datetime) -> tuple[tuple[str, float, datetime, datetime], ...]:
        ended = stored.valid_until or until
        past = (*stored.history, (stored.value, stored.confidence, stored.valid_from, ended))
        return past[len(past) - min(len(past), self._policy.history) :]

    def _retract(self, retraction: Retraction, said: Said) -> list[FactChange]:
        changes = []
        for category, key, fact in self._matching(retraction):
            until = max(said.at, fact.valid_from)
            ended = msgspec.structs.replace(fact, active=False, valid_until=until)
            changes.append(self._put(category, key, ended, "retracted"))
        return changes

    def _matching(self, retraction: Retraction) -> list[tuple[FactCategory, str, Fact]]:
        wanted = None if retraction.value is None else retraction.value.casefold()
        if retraction.category is not None and retraction.key is not None:
            one = self.get(retraction.category, retraction.key)
            known = [] if one is None else [(retraction.category, retraction.key, one)]
        else:
            known = list(self.all())
        return [
            (category, key, fact)
            for category, key, fact in known
            if fact.active
            and retraction.category in (None, category)
            and retraction.key in (None, key)
            and wanted in (None, fact.value.casefold())
        ]

    def _make_room(self, said: Said) -> list[FactChange]:
        """Beyond the policy's number past facts go from the state, the oldest first, then the least important."""
        surplus = self._parts.count(PREFIX) - self._policy.most
        if surplus <= 0:
            return []
        known = list(self.all())
        past = sorted((f.valid_until or f.valid_from, c, k) for c, k, f in known if not f.active)[:surplus]
        for _, category, key in past:
            self._parts.drop(_part(category, key))
        active = sorted((f.importance, f.valid_from, c, k) for c, k, f in known if f.active)
        return [self._evict(category, key, said) for _, _, category, key in active[: surplus - len(past)]]

    def _evict(self, category: FactCategory, key: str, said: Said) -> FactChange:
        fact = self.get(category, key)
        assert fact is not None, "it was listed"  # noqa: S101
        self._parts.drop(_part(category, key))
        ended = msgspec.structs.replace(fact, active=False, valid_until=max(said.at, fact.valid_from))
        return FactChange(category, key, ended, "evicted")

    def _put(self, category: FactCategory, key: str, fact: Fact, cause: FactCause) -> FactChange:
        self._parts.put(_part(category, key), _encode(fact))
        return FactChange(category, key, fact, cause)


def _confidence(extracted: ExtractedFact) -> float:
    return 1.0 if extracted.corrects else extracted.confidence


def _surest(facts: Iterable[ExtractedFact], policy: FactPolicy) -> list[ExtractedFact]:
    """What is sure and important enough, each category and key once (seed 002, flow 2, step 2)."""
    best: dict[tuple[FactCategory, str], ExtractedFact] = {}
    for fact in facts:
        if fact.confidence < policy.min_confidence or fact.importance < policy.min_importance:
            continue
        place = (fact.category, fact.key)
        known = best.get(place)
        if known is None or _confidence(fact) >= _confidence(known):
            best[place] = fact
    return list(best.values())


def _part(category: FactCategory, key: str) -> str:
    return f"{PREFIX}{category}/{key}"


def _read(data: bytes) -> Fact:
    try:
        return _decode(data)
    except msgspec.MsgspecError as error:
        raise RecoveryFailed(f"user state: a fact is unreadable ({error}). Drop the state topic and replay.") from error
