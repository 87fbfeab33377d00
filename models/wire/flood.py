"""When bad input is a flood: the input as a whole is broken, and diverting all of it would hide that."""

from __future__ import annotations

from collections import deque

from models.errors import DeadLetterFlood
from models.events import DeadLetter
from models.policy import IntakePolicy


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
                "`turntide dlq list`, mend the producer, start the worker again; the limits are policy "
                "intake.dead_letter_*"
            )

    def _note(self, *, bad: bool) -> None:
        if len(self._recent) == self._recent.maxlen and self._recent[0]:
            self._bad -= 1
        self._recent.append(bad)
        self._bad += bad
