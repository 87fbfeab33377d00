"""Readings of an optional second reader, as a signal: what it thinks of the user's turns, taken together; raises only.

A second reader (`streams.inference.e5_reader`) learnt pairs alone, in which harmful and benign differ in intent, not in
subject. Its log-odds of single turns are combined as the highest running mean that begins with two turns of -1:

```
after n turns:  mean = (sum - 2) / (n + 2)         value = clip((highest mean so far - CENTRE) / SPAN), 0-1
```

`CENTRE` is its average over public dialogues, harmless and escalating alike: what is below that says nothing, as alone
it is no detector, and would acquit what escalates by harmless questions (deploy/decisions/0010-escalation.md).
"""

import math

from msgspec import Struct

from models.risk.sequence import clip

READER = "reader"
"""Name of the signal, in weights, contributions and alerts."""
PRIOR_TURNS = 2
"""Turns supposed beforehand …"""
PRIOR_READING = -1.0
"""… and what the reader thinks of each."""
BOUND = 8.0
"""Log-odds beyond which a reading says no more."""
CENTRE = -1.03
"""Highest mean of an average dialogue."""
SPAN = 3.46
"""Above it: at how much the value is 1, four of their standard deviations."""


class Readings(Struct, array_like=True, gc=False):
    """What a reader thought of a session's turns: four numbers, however long it is.

    Attributes:
        total: Sum of the readings before the last message.
        turns: How many messages that were.
        highest: Highest mean up to them.
        last: Reading of the last message, of which another piece can still come; None before the first.
    """

    total: float = 0.0
    turns: int = 0
    highest: float = -BOUND
    last: float | None = None

    def observe(self, reading: float, *, continues: bool) -> None:
        """Take one turn in.

        Args:
            reading: The reader's log-odds that it is harmful; no number counts as 0.
            continues: Whether it is a further piece of the last message, which is read as the most harmful of them.
        """
        reading = 0.0 if math.isnan(reading) else min(max(reading, -BOUND), BOUND)
        if continues and self.last is not None:
            self.last = max(self.last, reading)
            return
        if self.last is not None:
            self.highest = self._highest
            self.total, self.turns = self.total + self.last, self.turns + 1
        self.last = reading

    @property
    def _highest(self) -> float:
        if self.last is None:
            return self.highest
        mean = (self.total + self.last + PRIOR_TURNS * PRIOR_READING) / (self.turns + 1 + PRIOR_TURNS)
        return max(self.highest, mean)

    @property
    def value(self) -> float:
        """0-1; never falls but where a message's reading is replaced."""
        return clip((self._highest - CENTRE) / SPAN)
