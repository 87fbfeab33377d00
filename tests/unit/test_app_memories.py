"""Which memory goes when there is one too many, which decisions can be carried out, and what memories are worth."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from models.app.rules import CompactionDecision, MemorySubject, decide, oldest, refusal
from models.app.worth import is_of_use
from models.events import ConversationEnded, Role
from models.events.app import MemoryToKeep
from models.language.days import names_a_day
from models.policy.app import AppPolicy
from tests.support.app_driver import THINGS, Space
from tests.support.data_files import data_file
from tests.support.session_driver import NOON, Session

POLICY = AppPolicy()
HOBBIES = ["chess", "sailing", "pottery", "judo", "baking", "opera", "skiing", "poker", "yoga", "surfing", "fencing"]


def memory(number: int, content: str | None = None, *, days: float = 0, **more: Any) -> MemoryToKeep:
    """A memory that was last changed so many days ago."""
    at = NOON - timedelta(days=days)
    content = f"User enjoys {HOBBIES[number % 11]}." if content is None else content
    fields: dict[str, Any] = {"importance": 0.5, "pinned": False} | more
    return MemoryToKeep(memory_id=number, content=content, created_at=at, updated_at=at, **fields)


def decision(action: str, target: int, content: str | None = None, merged: int | None = None) -> CompactionDecision:
    """What somebody decided."""
    return CompactionDecision(
        action=action, target_memory_id=target, new_content=content, reason="", merged_memory_id=merged
    )


TEN = [memory(number) for number in range(1, 11)]
NEW = memory(11, "User owns a boat.")


def test_two_that_say_the_same_are_merged() -> None:
    """Into the earlier one; what both say is said once, and the reason names the numbers.

    Of what contradicts itself the later is kept: by the time of change, not by number.
    """
    known = memory(3, "User prefers meetings after 2pm. User lives in Oslo.")
    new = memory(11, "User prefers meetings after 2pm. User works in Bergen.")
    made = decide([*TEN[:2], known, *TEN[3:]], new, NOON, POLICY)
    at_four = memory(3, "User prefers meetings after 4pm on weekdays. User has a dog.")
    before = memory(11, "User prefers meetings after 2pm on weekdays.", days=2)
    kept = decide([*TEN[:2], at_four, *TEN[3:]], before, NOON, POLICY)

    assert kept.new_content == at_four.content
    assert ("edit", 3, 11) == (made.action, made.target_memory_id, made.merged_memory_id)
    assert made.new_content == "User lives in Oslo. User prefers meetings after 2pm. User works in Bergen."
    assert made.reason.startswith("memories 3 and 11 say much the same: likeness 0.")


@pytest.mark.behaviour("app-08")
def test_else_the_one_goes_that_is_worth_least() -> None:
    """Importance, halved with every half-life; here 0.8 of 60 days is less than 0.3 of today."""
    old = memory(4, "User bought a tent.", importance=0.8, days=60)
    made = decide([*TEN[:3], old, memory(5, importance=0.3), *TEN[5:]], NEW, NOON, POLICY)

    assert ("delete", 4, None) == (made.action, made.target_memory_id, made.merged_memory_id)
    assert made.reason == (
        "memory 4 is worth least: importance 0.80, unchanged for 60.0 days, worth 0.200; the next, memory 5, 0.300"
    )


def test_pinned_memories_are_neither_deleted_nor_merged() -> None:
    """Not even the oldest, the least, or one that says the same."""
    pinned = memory(1, "User owns a boat.", importance=0.0, pinned=True, days=900)
    made = decide([pinned, *TEN[1:]], NEW, NOON, POLICY)

    assert (made.action, made.target_memory_id) == ("delete", 2)
    assert oldest([pinned, *TEN[1:]], NEW).target_memory_id == 2
    with pytest.raises(ValueError, match="every memory is pinned"):
        decide([pinned], memory(11, pinned=True), NOON, POLICY)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (decision("delete", 3), ""),
        (decision("delete", 11), ""),
        (decision("edit", 3, "User has hobbies."), ""),
        (decision("edit", 3, "User has hobbies.", merged=11), ""),
        (decision("edit", 3, "x" * 400), ""),
        (decision("keep", 3), "unknown_action"),
        (decision("DELETE", 3), "unknown_action"),
        (decision("", 3), "unknown_action"),
        (decision("delete", 12), "unknown_memory"),
        (decision("delete", 0), "unknown_memory"),
        (decision("edit", 12, "User has hobbies."), "unknown_memory"),
        (decision("edit", 3, "User has hobbies.", merged=12), "unknown_memory"),
        (decision("edit", 3, "User has hobbies.", merged=3), "unknown_memory"),
        (decision("delete", 1), "pinned"),
        (decision("edit", 1, "User has hobbies."), "pinned"),
        (decision("edit", 3, "User has hobbies.", merged=1), "pinned"),
        (decision("edit", 3), "empty_content"),
        (decision("edit", 3, " \n"), "empty_content"),
        (decision("edit", 3, "x" * 401), "too_long"),
    ],
)
def test_decisions_are_checked(made: CompactionDecision, expected: str) -> None:
    """Whoever made them; a language model says anything."""
    assert expected == refusal(made, [memory(1, pinned=True), *TEN[1:]], NEW, POLICY)


def test_an_edit_needs_another_that_can_go() -> None:
    """All but the target are pinned: nothing can be merged into it."""
    pinned = [memory(number, pinned=True) for number in range(1, 11)]

    assert refusal(decision("edit", 11, "User has hobbies."), pinned, NEW, POLICY) == "pinned"


def test_first_in_first_out() -> None:
    """The memory made first, not the one changed first; the new one only where all others are pinned."""
    first = memory(7, days=9)
    pinned = [memory(number, pinned=True) for number in range(1, 11)]

    assert ("delete", 7) == (oldest([*TEN[:6], first], NEW).action, oldest([*TEN[:6], first], NEW).target_memory_id)
    assert oldest(TEN, memory(11, days=99)).target_memory_id == 1
    assert oldest(pinned, NEW).target_memory_id == 11
    assert "made 2026-02-20T12:00:00+00:00" in oldest([*TEN[:6], first], NEW).reason


SHEET = memory(3, "Conversation about spreadsheet, shared and column. The sums are right.", importance=0.3)
SHARES = memory(11, "Conversation about Noor, share and spreadsheet. User decided to pay by rooms.", importance=0.8)


def subjects(**topics: str) -> dict[int, MemorySubject]:
    """Of the two above, and of the others, who have no topics in common."""
    told = {number: MemorySubject("anna", frozenset({HOBBIES[number % 11], "tea"})) for number in range(1, 11)}
    return told | {int(name[1:]): MemorySubject("anna", frozenset(each.split())) for name, each in topics.items()}


def test_two_of_the_same_user_and_subject_are_merged() -> None:
    """Though they say different things; what only named topics, as releases up to 0.2 wrote it, goes."""
    of = subjects(m3="spreadsheet shared column", m11="noor share spreadsheet shared")
    made = decide([*TEN[:2], SHEET, *TEN[3:]], SHARES, NOON, POLICY, subjects=of)

    assert ("edit", 3, 11) == (made.action, made.target_memory_id, made.merged_memory_id)
    assert made.new_content == "The sums are right. User decided to pay by rooms."
    assert made.reason == "memories 3 and 11 are of the same user and subject, 2 topics that no other has"


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


@pytest.mark.behaviour("app-08")
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


@pytest.mark.behaviour("app-05")
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


@pytest.mark.parametrize(("said", "day"), data_file("app_memory_value")["days"])
def test_days_without_a_year_are_the_next_of_their_name(said: str, day: str) -> None:
    """Or one that was just before; a month alone means its last day."""
    found = names_a_day(said, NOON.date())

    assert ("" if found is None else found.isoformat()) == day


@pytest.mark.parametrize(("lasting", "passing"), data_file("app_memory_value")["lasting"])
def test_what_lasts_ages_slower_than_what_is_done(lasting: str, passing: str) -> None:
    """By what the table of notable sentences says of it."""
    assert is_of_use(lasting) > is_of_use(passing)
