"""What of a conversation is worth remembering: examples and near misses of each kind."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from models.events import Role
from models.events.app import NotableKind, NotableSentence
from models.language.notable import PART, Notables, clipped, notables_of
from models.policy.app import AppPolicy
from models.state.buffer import BufferedTurn
from models.state.parts import Parts
from tests.support.data_files import data_file

AT = datetime(2026, 3, 1, tzinfo=UTC)
POLICY = AppPolicy()
SENTENCES = data_file("notable")


def turn(content: str, number: int = 0, role: Role = Role.USER) -> BufferedTurn:
    """A turn of a user."""
    return BufferedTurn(number, role, content, AT, None)


def found(content: str, role: Role = Role.USER) -> list[NotableSentence]:
    """What is notable in one turn."""
    return notables_of([turn(content, role=role)], POLICY)


@pytest.mark.parametrize(("kind", "content"), SENTENCES["said"])
def test_what_a_user_says_is_of_its_kind(kind: str, content: str) -> None:
    """One sentence, one kind, as it was said."""
    assert [kind] == [notable.kind for notable in found(content)]


@pytest.mark.parametrize("content", SENTENCES["near_misses"] + SENTENCES["never_kept"])
def test_near_misses_are_none(content: str) -> None:
    """Questions, suppositions, what is not decided, what others said, what says nothing; no secret, no order."""
    assert found(content) == []


@pytest.mark.parametrize(("content", "notable"), SENTENCES["of_assistants"])
def test_of_assistants_only_outcomes_are_notable(content: str, notable: bool) -> None:
    """What it did, not what it offers; it has no preferences."""
    expected = [NotableKind.OUTCOME] if notable else []

    assert expected == [each.kind for each in found(content, Role.ASSISTANT)]


@pytest.mark.parametrize(("content", "answer", "kept"), SENTENCES["refused"])
def test_what_was_refused_is_no_memory(content: str, answer: str, kept: int) -> None:
    """An order or a wish goes with its refusal, also where that is in the next segment; what the user is, stays."""
    turns = [turn(content, 4), turn(answer, 5, Role.ASSISTANT)]
    apart = Notables(Parts({}), POLICY)
    apart.add(turns[:1])
    apart.add(turns[1:])

    assert kept == len(notables_of(turns, POLICY)) == len(apart.all())


def test_tools_say_nothing_notable() -> None:
    """Their output is nobody's decision."""
    assert found("I decided to take the train.", Role.TOOL) == []


def test_the_end_of_a_long_paste_is_looked_at() -> None:
    """The middle is not: a paste costs no more than a turn."""
    content = f"{'Nothing here. ' * 80}I decided to sell. {'Nothing here. ' * 80}I decided to buy."

    assert ["I decided to buy."] == [notable.text for notable in found(content)]


def test_the_best_are_kept_and_written_only_when_they_change() -> None:
    """By weight, of equals the later; in order of turn; a repeated sentence counts once, where it was said last."""
    parts = Parts({})
    notables = Notables(parts, AppPolicy(notables=2))
    written = notables.add([turn("I want to learn Spanish soon.", 0), turn("I decided to stay.", 1)])

    assert written == len(PART) + len(parts.get(PART) or b"")
    assert notables.add([turn("Hello there, how are you?", 2)]) == 0

    notables.add([turn("I decided to stay.", 3), turn("I decided to go.", 4), turn("I own a boat here.", 5)])
    kept = parts.get(PART)

    assert [(3, "I decided to stay."), (4, "I decided to go.")] == [(n.turn, n.text) for n in notables.all()]
    assert notables.add([turn("I own a boat here.", 6)]) == 0
    assert kept is parts.get(PART)


def test_long_sentences_are_cut_between_words() -> None:
    """What is cut says so."""
    (notable,) = notables_of(
        [turn("I decided to keep the boat and " + "row " * 40 + "home.")], AppPolicy(notable_chars=40)
    )

    assert ("I decided to keep the boat and row row…", True) == (notable.text, len(notable.text) <= 40)
    assert [clipped("one two three", size) for size in (13, 12, 8, 2)] == [
        "one two three",
        "one two…",
        "one two…",
        "o…",
    ]
