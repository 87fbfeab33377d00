"""How much of some messages a search still finds in the summary that stands for them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from models.text.keywords import topics_of
from models.text.words import fold_text, words_of

_NAMED = 3
"""Topics a message is searched by: its most specific ones."""


class Probed(Struct, frozen=True, gc=False):
    """How many messages could be searched for, and how many of them are found."""

    probes: int
    found: int

    @property
    def loss(self) -> float:
        """Share that is not found; 0 without probes."""
        return 1.0 - self.found / self.probes if self.probes else 0.0


def probe(messages: Sequence[str], summary: str, risky: tuple[str, ...] = ()) -> Probed:
    """Search a summary for each message by its most specific topics; found if it names at least half of them.

    A message that names nothing (thanks, yes) is no probe.

    >>> probe(["My parcel from Lisbon is late", "Thanks!"], "The parcel is late.")
    Probed(probes=1, found=1)
    """
    searches = [topics_of(words_of(fold_text(message)), risky, _NAMED) for message in messages]
    named = set(topics_of(words_of(fold_text(summary)), risky, len(summary)))
    asked = [topics for topics in searches if topics]
    return Probed(len(asked), sum([2 * len(named.intersection(topics)) >= len(topics) for topics in asked]))
