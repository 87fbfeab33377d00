"""Arrival of one record at a fold: the event, its place in the log, the clock there, and what batch stages added."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from models.errors import DeadLetterFlood
from models.events import CommandEvent, DeadLetter, Position, SessionControl, SessionErased, Turn
from models.policy import IntakePolicy


class SessionTimedOut(Struct, frozen=True, gc=False):
    """The partition's watermark passed the session's deadline, or there were too many sessions.

    Never on a topic: the partition fold makes it.
    """

    session_id: str
    deadline: datetime
    reason: Literal["timed_out", "evicted"] = "timed_out"


SessionEvent = Turn | SessionControl | SessionErased | SessionTimedOut


class SessionInput(Struct, frozen=True, gc=False):
    """One event for one session.

    Attributes:
        event: What happened.
        position: The record that carried it (for a time-out: the record that moved the watermark).
        watermark: Event time of the partition at this record, never decreasing.
        risk: The scorer's risk of a turn, also of one that brought another; None for other events.
        vector: The embedding of a turn or of a restored topic's title, `(dim,)` float32 of unit length, or None (empty
            text, other roles).
    """

    event: SessionEvent
    position: Position
    watermark: datetime
    risk: float | None = None
    vector: NDArray[np.float32] | None = None


class Command(Struct, frozen=True, gc=False):
    """A decoded record of `commands.v1`."""

    event: CommandEvent
    position: Position
    appended_at: datetime


class FloodGauge:
    """Watches the share of bad records and stops the role at the policy's limits."""

    def __init__(self, limits: IntakePolicy) -> None:
        self._limits = limits
        self._in_a_row = 0
        self._recent: deque[bool] = deque(maxlen=limits.dead_letter_window)
        self._bad = 0

    def good(self) -> None:
        """A record could be used."""
        self._in_a_row = 0
        self._note(bad=False)

    def bad(self, letter: DeadLetter) -> None:
        """A record could not be used.

        Raises:
            DeadLetterFlood: Too many in a row, or too many of the last ones.
        """
        self._in_a_row += 1
        self._note(bad=True)
        full = len(self._recent) == self._limits.dead_letter_window
        if self._in_a_row >= self._limits.dead_letter_consecutive or (
            full and self._bad >= self._limits.dead_letter_ratio * self._limits.dead_letter_window
        ):
            raise DeadLetterFlood(
                f"{self._bad} of the last {len(self._recent)} records are bad, {self._in_a_row} in a row up to "
                f"{letter.topic}[{letter.partition}]@{letter.offset}, the last one {letter.reason}. Look at "
                "`turntide ops dlq list`, mend the producer, start the worker again; the limits are policy "
                "intake.dead_letter_*"
            )

    def _note(self, *, bad: bool) -> None:
        if len(self._recent) == self._recent.maxlen and self._recent[0]:
            self._bad -= 1
        self._recent.append(bad)
        self._bad += bad
