"""What app memories are worth: what is still of use stays before what is only recent, and nothing else is said."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import msgspec
import pytest

from models.app.worth import is_of_use, worth
from models.events import ConversationEnded, Role
from models.events.app import MemoryToKeep
from models.language.days import names_a_day
from models.policy.app import AppPolicy
from tests.support.app_driver import THINGS, Space
from tests.support.data_files import data_file
from tests.support.session_driver import NOON, Session

MEETINGS = "I prefer meetings after 2pm on weekdays."
PHOENIX = 'I am working on a project called "Phoenix" with deadline Nov 1.'
DATABASE = "We had database connection issues, restarting the service fixed it."
TOLD = {
    MEETINGS: "User prefers meetings after 2pm on weekdays.",
    PHOENIX: "User is working on a project called Phoenix with deadline Nov 1.",
    DATABASE: "User: We had database connection issues, restarting the service fixed it.",
}
DAY = timedelta(days=1)


class App(Space):
    """An app's space in which whole conversations end, each with one thing that its user says, a day apart."""

    def converse(self, *said: str) -> None:
        """A conversation with an answer to each turn."""
        session = Session(self.policy)
        for turn, content in enumerate(part for each in said for part in (each, "Noted, thank you.")):
            session.say(turn, content, role=Role.ASSISTANT if turn % 2 else Role.USER)
        session.end(minute=len(said) * 2)
        (end,) = session.of(ConversationEnded)
        fields = {"app_id": "shop", "user_id": "anna", "timestamp": self.now, "ended_at": self.now}
        number = self._ends = self._ends + 1
        source = msgspec.structs.replace(end.source, partition=0, offset=number)
        self.now += DAY
        self.put(msgspec.structs.replace(end, id=f"c{number}", session_id=f"c{number}", source=source, **fields))


@pytest.mark.parametrize("purchases", [8, 40])
def test_the_source_s_example_outlasts_purchases(purchases: int) -> None:
    """App memory, Memory Context Format: a preference, ongoing work with its deadline; what is over may go."""
    app = App(user="anna")
    app.now = datetime.fromisoformat("2026-09-10T09:00:00Z")
    for said in TOLD:
        app.converse(said)
    for number in range(purchases):
        app.converse(f"I decided to buy {THINGS[number % len(THINGS)]} for {number} euros.")

    assert TOLD[MEETINGS] in app.contents
    assert TOLD[PHOENIX] in app.contents
    assert (len(app.active), len(app.compactions)) == (10, purchases + 3 - 10)


def test_a_memory_is_what_was_said() -> None:
    """One sentence where one was said; no opening that only names topics."""
    app = App(user="anna")
    app.converse("I decided to buy the blue kettle.")
    app.converse(PHOENIX, "The kettle is blue.", MEETINGS)

    assert app.contents == ["User decided to buy the blue kettle.", f"{TOLD[PHOENIX]} {TOLD[MEETINGS]}"]


def test_a_deadline_that_is_over_goes_first() -> None:
    """Until its day a deadline does not age; behind it it is worth less than what was bought yesterday."""
    app = App(user="anna")
    app.now = datetime.fromisoformat("2026-10-26T09:00:00Z")
    app.converse("The deadline of the Phoenix project is Nov 1.")
    for number in range(10):
        app.converse(f"I decided to buy {THINGS[number]} for {number} euros.")

    assert [compaction.target_memory_id for compaction in app.compactions] == [1]


@pytest.mark.parametrize(
    ("said", "day"),
    data_file("app_memory_value")["days"],
)
def test_days_without_a_year_are_the_next_of_their_name(said: str, day: str) -> None:
    """Or one that was just before; a month alone means its last day."""
    found = names_a_day(said, NOON.date())

    assert ("" if found is None else found.isoformat()) == day


@pytest.mark.parametrize(("said", "day"), [(date.min, date(1, 11, 1)), (date.max, None)])
def test_a_clock_that_stands_at_an_end_of_time_stops_nothing(said: date, day: date | None) -> None:
    """A day is read, or none."""
    assert names_a_day("The deadline is Nov 1, or 29 February.", said) == day


@pytest.mark.parametrize(
    ("lasting", "passing"),
    data_file("app_memory_value")["lasting"],
)
def test_what_lasts_ages_slower_than_what_is_done(lasting: str, passing: str) -> None:
    """By what the table of notable sentences says of it."""
    assert is_of_use(lasting) > is_of_use(passing)


def test_worth_falls_with_time_and_rises_with_importance() -> None:
    """Half after a half-life; a preference takes longer."""
    policy = AppPolicy()

    def kept(content: str, importance: float = 0.8) -> MemoryToKeep:
        return MemoryToKeep(
            memory_id=1, content=content, importance=importance, pinned=False, created_at=NOON, updated_at=NOON
        )

    later = NOON + policy.half_life

    assert worth(kept("User bought a tent."), later, policy) == pytest.approx(0.4)
    assert worth(kept("User bought a tent.", 0.4), later, policy) == pytest.approx(0.2)
    assert worth(kept("User prefers tea."), NOON + policy.lasting_half_life, policy) == pytest.approx(0.4)
