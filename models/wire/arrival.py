"""Arrival of one record at a fold: the event, its place in the log, the clock there, and what batch stages added."""

from datetime import datetime
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from models.events import CommandEvent, Position, SessionControl, SessionErased, Turn, UnnumberedTurn


class SessionTimedOut(Struct, frozen=True, gc=False):
    """The partition's watermark passed a deadline of the session, or there were too many sessions.

    Never on a topic: the partition fold makes it.

    Attributes:
        session_id: The session.
        deadline: That passed, or would have.
        reason: Which of the two it was, and of what: the session, or the snooze of its alert.
        namesakes: Sessions of the same id, in other apps, of which the same record made one before this one.
    """

    session_id: str
    deadline: datetime
    reason: Literal["timed_out", "evicted", "snooze_over"] = "timed_out"
    namesakes: int = 0


SessionEvent = Turn | UnnumberedTurn | SessionControl | SessionErased | SessionTimedOut


class SessionInput(Struct, frozen=True, gc=False):
    """One event for one session.

    Attributes:
        event: What happened.
        position: The record that carried it (for a time-out: the record that moved the watermark).
        watermark: Event time of the partition at this record, never decreasing.
        risk: The scorer's risk of a turn, also of one that brought another; None for other events.
        vector: The embedding of a turn or of a restored topic's title, `(dim,)` float32 of unit length, or None (empty
            text, other roles).
        first_turn: Lowest number to give, where the session is not known.
        language: Of a turn that is scored, ISO 639-1; empty where too little is said (`models.text.language`).
        harms: Kinds of harm of a turn whose risk stands out, in per cent (`models.risk.harm`); empty for all others.
        reading: What a second reader thinks of a user's turn (`models.risk.reading`); None where none is configured.
    """

    event: SessionEvent
    position: Position
    watermark: datetime
    risk: float | None = None
    vector: NDArray[np.float32] | None = None
    first_turn: int = 0
    language: str = ""
    harms: tuple[int, ...] = ()
    reading: float | None = None


class Command(Struct, frozen=True, gc=False):
    """A decoded record of `commands.v1`."""

    event: CommandEvent
    position: Position
    appended_at: datetime
