"""Typed statements out of project talk: the source's patterns, doubts, content, subjects, what was taken up."""

import pytest

from jobs.lab.eval.extraction import measure, read_messages
from models.events.base import Role
from models.events.project_items import MemoryType
from models.language.statements.extraction import ExtractedStatement, extract
from models.language.statements.subjects import CATEGORIES_OF_SLOTS, SLOTS, TECHNOLOGIES
from models.policy import Policy
from models.policy.project import LongTermPolicy
from tests.support.data_files import data_file
from tests.support.fields import assert_fields

PROMOTED = LongTermPolicy().promote_from
SAID = data_file("project_statements")
DECISION, CONSTRAINT = MemoryType.DECISION, MemoryType.CONSTRAINT


def one(text: str, context: str = "") -> ExtractedStatement:
    """The only statement of a user's message."""
    [found] = extract(text, Role.USER, context=context)
    return found


@pytest.mark.behaviour("project-16")
@pytest.mark.parametrize(("text", "type_", "confidence"), SAID["patterns"])
def test_each_of_the_seeds_patterns_leads_to_its_type(text: str, type_: str, confidence: float) -> None:
    """Project memory, Automatic Extraction, every word of it in a plain statement of the team."""
    found = one(text)

    assert (type_, confidence) == (found.type, found.confidence)
    assert not found.doubts


@pytest.mark.parametrize(("text", "expected"), [*SAID["joined"], *((text, []) for text in SAID["silent"])])
def test_what_a_list_or_a_comma_joins_are_statements_of_their_own(text: str, expected: list[str]) -> None:
    """Each stands alone, with its heading. Questions, small talk, code, quotes and secrets are not even pending."""
    assert expected == [each.content for each in extract(text, Role.USER)]


@pytest.mark.parametrize(("text", "doubt"), SAID["doubtful"])
def test_doubts_are_named_and_keep_a_statement_from_being_kept(text: str, doubt: str) -> None:
    """What is denied, supposed or said by others waits at most."""
    found = one(text)

    assert doubt in found.doubts
    assert found.confidence < PROMOTED


def test_the_labelled_messages_are_read_as_labelled() -> None:
    """Each type nearly in full on the messages that rules were written by, and silence where nothing is stated."""
    sentences = [each for each in read_messages() if each.split == "dev"]
    report = measure(sentences, Policy())

    assert min(figures.precision or 0 for figures in report["by_type"].values()) >= 0.93
    assert min(figures.recall or 0 for figures in report["by_type"].values()) >= 0.85
    assert (report["negatives_clean"] or 0) >= 0.98


def test_proposal_is_a_decision_once_the_user_takes_it_up() -> None:
    """The assistant's advice alone is none, and neither is a yes to nothing."""
    advice = "I recommend PostgreSQL for this use case. It is robust."
    found = one("Yes, let's do that.", context=advice)

    assert [] == extract(advice, Role.ASSISTANT)
    assert [] == extract("Yes, let's do that.", Role.USER)
    assert_fields(found, type=DECISION, confidence=0.8, content="Use PostgreSQL for this use case", subject="database")


@pytest.mark.parametrize(
    "reply", ["No, let's not do that.", "Yes, but is it fast?", "Thanks!", "Let me think about it."]
)
def test_proposal_that_is_not_taken_up(reply: str) -> None:
    """Anything but plain agreement leaves it a proposal; of several it is not known which one was meant."""
    assert [] == [
        each
        for each in extract(reply, Role.USER, context="I recommend PostgreSQL.")
        if "PostgreSQL" in each.content and each.confidence >= PROMOTED
    ]
    assert [] == extract("Agreed.", Role.USER, context="I recommend Vue. You should also drop the old API.")


@pytest.mark.parametrize(("advice", "expected"), SAID["proposals"])
def test_what_was_proposed_reads_as_an_order(advice: str, expected: str) -> None:
    """The memory stands alone, whatever the form of the advice."""
    assert expected == one("Agreed, let's do that.", context=advice).content


def test_what_an_assistant_recalls_is_doubted() -> None:
    """It may be wrong about what the team decided, so it waits; what a system prints is nobody's decision."""
    [found] = extract("We decided to use PostgreSQL.", Role.ASSISTANT)

    assert (["assistant"], True) == (found.doubts, found.confidence < PROMOTED)
    assert [] == extract("We decided to use PostgreSQL.", Role.SYSTEM)


@pytest.mark.parametrize(("text", "subject"), SAID["subjects"])
def test_subject_is_given_only_where_it_is_plain(text: str, subject: str) -> None:
    """A wrong one would retire a memory that still holds."""
    assert subject == one(text).subject


def test_refusals_and_changes_of_plan_are_marked() -> None:
    """A refusal of X must not be read as a decision for X; readers tell a pivot from a first decision."""
    found = one("We decided against MongoDB.")

    assert ("We decided against MongoDB", True) == (found.content, "rejected" in found.tags)
    assert "pivot" in one("Scrap that, we're using Svelte instead.").tags


def test_each_clause_is_a_statement_of_its_own() -> None:
    """A decision and a constraint in one sentence are two memories, each standing alone."""
    found = extract("OK, we chose Vue for the frontend, and backups must be encrypted.", Role.USER)

    assert [(DECISION, "We chose Vue for the frontend"), (CONSTRAINT, "Backups must be encrypted")] == [
        (each.type, each.content) for each in found
    ]


def test_lexicon_holds_together() -> None:
    """Each slot that a noun names or a category counts can be filled or measured; no name is in capitals."""
    slots = {slot for slot, _ in TECHNOLOGIES.values()}
    measured = {"budget", "deadline", "launch date", "release date", "team size"}

    assert set() == set(SLOTS.values()) - slots
    assert set() == set(CATEGORIES_OF_SLOTS) - slots - measured
    assert [] == [name for name in TECHNOLOGIES if name != name.casefold()]
