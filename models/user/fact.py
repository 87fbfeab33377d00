"""One fact of a user, and one retraction, as the state keeps them, and what becomes of a fact."""

from datetime import datetime
from typing import NamedTuple

from msgspec import Struct, structs

from models.events import BY_HAND, FactCategory, FactCause, PastFact
from models.state.entity import StateLayout


class PastValue(Struct, frozen=True, array_like=True):
    """One value before. Fields as in `models.events.user.PastFact`."""

    value: str
    confidence: float
    valid_from: datetime
    valid_until: datetime
    made_by: str = ""
    by: str = ""
    contradicted: bool = False


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
    history: tuple[PastValue, ...] = ()
    """The oldest first."""
    key: str = ""
    """What it is about, in the user's words: its part is named without them."""
    pinned: bool = False
    by: str = ""

    @property
    def written(self) -> bool:
        """Whether somebody wrote the value that holds."""
        return self.active and self.extracted_by == BY_HAND

    def past(self) -> list[PastFact]:
        """The values before this one, as events tell them."""
        return [PastFact(**structs.asdict(each)) for each in self.history]


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
    by: str = ""


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
