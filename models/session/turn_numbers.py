"""Conflicts of turn numbers: of several turns with one number, the first in the log counts.

A bot that restarts counts from 0 again. The first turn is kept; a later turn with the same text is a repeat, one with
another text is a conflict, reported with both positions. First means the lowest partition, then the lowest offset, as
in the archive's view `turns`: so a reader gets the same turns when it reads the log again, or in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from models.events import DeadLetter, Position, SessionName, Turn, TurnCorrected, session_key
from models.events.ids import event_id

INDEX_STAGE = "index"
"""Stage of a dead letter whose record is valid and was folded; only its number is taken."""
TURN_CONFLICT = "turn_conflict"
UNKNOWN_TURN = "unknown_turn"

SessionTurn = tuple[SessionName, int]
"""A turn's number within its session."""


class PlacedTurn(NamedTuple):
    """A turn, the position of its record, and the time at which the broker appended it."""

    turn: Turn
    place: Position
    appended_at: datetime

    @property
    def name(self) -> SessionTurn:
        """Session and number."""
        return SessionName(self.turn.app_id, self.turn.session_id), self.turn.turn


class PlacedCorrection(NamedTuple):
    """A correction of a turn, with the position and time of its record."""

    event: TurnCorrected
    place: Position
    appended_at: datetime

    @property
    def name(self) -> SessionTurn:
        """Session and number."""
        return SessionName(self.event.app_id, self.event.session_id), self.event.turn


class StandingTurn(NamedTuple):
    """The turn that a store has under a number.

    Attributes:
        text: Stored text; None for a corrected turn, whose original text is unknown.
        partition: Partition of its record; None if an early release stored no position: then it counts as first.
        offset: Offset of its record.
    """

    text: str | None
    partition: int | None
    offset: int

    def is_before(self, place: Position) -> bool:
        """Whether it is before a record, by partition and offset."""
        return self.partition is None or (self.partition, self.offset) < (place.partition, place.offset)


class FirstTurns(NamedTuple):
    """Turns of a batch to store, and dead letters of conflicting ones."""

    kept: list[PlacedTurn]
    conflicts: list[DeadLetter]


def first_turns(
    said: Iterable[PlacedTurn], standing: Mapping[SessionTurn, StandingTurn], shown: Callable[[str], str] = str
) -> FirstTurns:
    """Select the turns of a batch to store.

    A record that is read again is stored again: a new reading of the log may store more fields than the earlier one.

    Args:
        said: Turns in any order.
        standing: Turns that are already stored.
        shown: How texts are stored now (masked); stored ones may be older than this rule.
    """
    stands, kept, conflicts = dict(standing), dict[SessionTurn, PlacedTurn](), list[DeadLetter]()
    for each in said:
        known = stands.get(each.name)
        is_same = known is not None and (known.text is None or each.turn.content in (known.text, shown(known.text)))
        if known is None or not known.is_before(each.place) or (is_same and known.partition is None):
            kept.pop(each.name, None)
            kept[each.name] = each
            stands[each.name] = StandingTurn(each.turn.content, each.place.partition, each.place.offset)
        elif not is_same:
            conflicts.append(_letter(each, known))
    return FirstTurns([*kept.values()], conflicts)


def unknown_turn(correction: PlacedCorrection) -> DeadLetter:
    """The dead letter of a correction of an unknown turn."""
    detail = f"turn {correction.event.turn} of the session is not known: it was erased, or never came"
    return _refused(UNKNOWN_TURN, *correction, detail)


def _letter(said: PlacedTurn, stands: StandingTurn) -> DeadLetter:
    turn, place = said.turn, said.place
    first = "an unknown place" if stands.partition is None else f"{place.topic}-{stands.partition}-{stands.offset}"
    here = f"{place.topic}-{place.partition}-{place.offset}"
    detail = f"turn {turn.turn} stands at {first} with other text than at {here}"
    return _refused(TURN_CONFLICT, turn, place, said.appended_at, detail)


def _refused(
    reason: str, event: Turn | TurnCorrected, place: Position, appended_at: datetime, detail: str
) -> DeadLetter:
    """A dead letter without bytes, which topic and archive have; erasures find it by the session and app in its key."""
    return DeadLetter(
        id=event_id(reason, place.topic, place),
        topic=place.topic,
        partition=place.partition,
        offset=place.offset,
        stage=INDEX_STAGE,
        reason=reason,
        detail=detail,
        key=session_key(event.app_id, event.session_id).encode(),
        value=None,
        headers=[],
        appended_at=appended_at,
    )
