"""Of several turns with one number the first in the log stands: which of a batch do, and which say something else.

A bot that restarts counts from 0 again. What was counted first stays; a later turn with the same text is a repeat, and
one with other text is a conflict, which is told with both places. First is the lowest partition, then the lowest
offset, as in the archive's view `turns`: whoever reads the log again, or in another order, ends on the same turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from models.events import DeadLetter, Position, SessionName, Turn, TurnCorrected, session_key
from models.events.ids import event_id

INDEX_STAGE = "index"
"""Stage of a dead letter whose record is good, and folded: what cannot be kept is its number."""
TURN_CONFLICT = "turn_conflict"
UNKNOWN_TURN = "unknown_turn"

SessionTurn = tuple[SessionName, int]
"""A turn's number within its session."""


class PlacedTurn(NamedTuple):
    """A turn, where its record stands, and when the broker appended it."""

    turn: Turn
    place: Position
    appended_at: datetime

    @property
    def name(self) -> SessionTurn:
        """Session and number."""
        return SessionName(self.turn.app_id, self.turn.session_id), self.turn.turn


class PlacedCorrection(NamedTuple):
    """A correction of a turn, likewise."""

    event: TurnCorrected
    place: Position
    appended_at: datetime

    @property
    def name(self) -> SessionTurn:
        """Session and number."""
        return SessionName(self.event.app_id, self.event.session_id), self.event.turn


class StandingTurn(NamedTuple):
    """What a store has under a number.

    Attributes:
        text: As it is kept; None of one that was put right: what it said first is not known.
        partition: Where its record stands, with `offset`; None where an early release kept no place: it was first.
        offset: Likewise.
    """

    text: str | None
    partition: int | None
    offset: int

    def is_before(self, place: Position) -> bool:
        """Whether it stands before a record."""
        return self.partition is None or (self.partition, self.offset) < (place.partition, place.offset)


class FirstTurns(NamedTuple):
    """What is to be kept of a batch, and letters of what says something else than what stands."""

    kept: list[PlacedTurn]
    conflicts: list[DeadLetter]


def first_turns(
    said: Iterable[PlacedTurn], standing: Mapping[SessionTurn, StandingTurn], shown: Callable[[str], str] = str
) -> FirstTurns:
    """Sort out which turns of a batch stand.

    A record that is read again is kept again: who reads the log anew may keep more of it than before.

    Args:
        said: Turns in any order.
        standing: What is there already.
        shown: How a text is kept by now; what is there may be older than that rule.
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
    """The letter of a correction whose turn there is not."""
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
    """Without the bytes, which topic and archive have; its key names the session and its app: erasures go by it."""
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
