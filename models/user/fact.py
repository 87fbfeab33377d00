"""One fact of a user, and one retraction, as the state keeps them, and what becomes of a fact."""

from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from models.events import FactCategory, FactCause, PastFact
from models.state.entity import StateLayout


class Fact(Struct, frozen=True, array_like=True):
    """One fact of a user as the state keeps it. Fields as in `models.events.user.FactChanged`."""

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
    key: str = ""
    """What it is about, in the user's words: its part is named without them."""

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


class FactProvenance(NamedTuple):
    """Where and when a fact was said, and who understood it."""

    at: datetime
    session_id: str
    turn: int
    extracted_by: str


class TakenBack(Struct, frozen=True, array_like=True):
    """A retraction and when it was said. What is None matches anything."""

    category: FactCategory | None
    key: str | None
    value: str | None
    at: datetime

    def names(self, category: FactCategory, key: str, value: str) -> bool:
        """Whether it takes this back."""
        return (
            self.category in (None, category)
            and self.key in (None, key)
            and (self.value is None or self.value.casefold() == value.casefold())
        )


LAYOUT = StateLayout("user state", version=2)
