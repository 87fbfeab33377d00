"""Typed statements out of project talk: the source's patterns, doubts, content, subjects, what was taken up."""

from __future__ import annotations

import pytest

from jobs.lab.eval.extraction import measure, read_sentences
from models.events.base import Role
from models.events.project_items import MemoryType
from models.language.statements.extraction import MAX_CONTENT_CHARS, ExtractedStatement, extract
from models.language.statements.subjects import CATEGORIES_OF_SLOTS, SLOTS, TECHNOLOGIES
from models.policy.project import LongTermPolicy

PROMOTED = LongTermPolicy().promote_from
DECISION, PREFERENCE, CONSTRAINT, GOAL = (
    MemoryType.DECISION,
    MemoryType.PREFERENCE,
    MemoryType.CONSTRAINT,
    MemoryType.GOAL,
)


def one(text: str, context: str = "") -> ExtractedStatement:
    """The only statement of a user's message."""
    [found] = extract(text, Role.USER, context=context)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We decided to use PostgreSQL.", (DECISION, 0.8)),
        ("We chose PostgreSQL.", (DECISION, 0.8)),
        ("The team went with Kafka.", (DECISION, 0.8)),
        ("I prefer tabs.", (PREFERENCE, 0.7)),
        ("We need a staging environment.", (PREFERENCE, 0.7)),
        ("The API must be stateless.", (CONSTRAINT, 0.7)),
        ("We cannot use GPL libraries.", (CONSTRAINT, 0.7)),
        ("Our goal is a public beta.", (GOAL, 0.8)),
        ("We aim for a release in May.", (GOAL, 0.8)),
    ],
)
def test_each_of_the_seeds_patterns_leads_to_its_type(text: str, expected: tuple[MemoryType, float]) -> None:
    """Project memory, Automatic Extraction, every word of it in a plain statement of the team."""
    found = one(text)

    assert expected == (found.type, found.confidence)
    assert not found.doubts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Vendors so far:\n- flowers: Petal & Stem\n- cake: my aunt",
            ["Vendors so far: flowers: Petal & Stem", "Vendors so far: cake: my aunt"],
        ),
        ("Decisions:\n1. dropping IE\n2. clay tiles", ["Decisions: dropping IE", "Decisions: clay tiles"]),
        ("Contacts: Ines (product), Takumi (data)", ["Contacts: Ines (product)", "Contacts: Takumi (data)"]),
        ("I prefer tabs, we use Vue for the frontend", ["I prefer tabs", "We use Vue for the frontend"]),
    ],
)
def test_what_a_list_or_a_comma_joins_are_statements_of_their_own(text: str, expected: list[str]) -> None:
    """Each stands alone: an item keeps the heading that says what it is."""
    assert expected == [each.content for each in extract(text, Role.USER)]


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("We have not decided on a database.", "negated"),
        ("If we chose MongoDB, we would lose transactions.", "hypothetical"),
        ("Maybe we should use GraphQL.", "hypothetical"),
        ("They chose MongoDB for the shop.", "third_person"),
        ("The article says we must use event sourcing.", "reported"),
        ("Back then we chose Angular.", "past"),
        ("I think we should use Redis.", "opinion"),
        ("We decided to use it.", "unclear"),
    ],
)
def test_doubts_are_named_and_keep_a_statement_from_being_kept(text: str, doubt: str) -> None:
    """What is denied, supposed or said by others waits at most."""
    found = one(text)

    assert doubt in found.doubts
    assert found.confidence < PROMOTED


def test_the_labelled_messages_are_read_as_labelled() -> None:
    """Each type nearly in full on the messages that rules were written by, and silence where nothing is stated."""
    sentences = [each for each in read_sentences() if each.split == "dev"]
    report = measure(sentences, lambda each: extract(each.text, each.role, context=each.context), PROMOTED)

    assert min(figures.precision or 0 for figures in report.by_type.values()) >= 0.93
    assert min(figures.recall or 0 for figures in report.by_type.values()) >= 0.85
    assert (report.negatives_clean or 0) >= 0.98


@pytest.mark.parametrize(
    "text",
    [
        "We decided on PostgreSQL, right?",
        "I'll write to their support and wait.",
        "```\nwe decided to use MySQL\n```",
        'The readme says "We decided to use Yarn for everything".',
        "We decided that the password is hunter2.",
        "Error: connection refused",
        "Database: tbd",
        "",
    ],
)
def test_what_states_nothing(text: str) -> None:
    """Questions, small talk, code, quotes and secrets are not even pending."""
    assert [] == extract(text, Role.USER)


def test_proposal_is_a_decision_once_the_user_takes_it_up() -> None:
    """The assistant's advice alone is none, and neither is a yes to nothing."""
    advice = "I recommend PostgreSQL for this use case. It is robust."
    found = one("Yes, let's do that.", context=advice)

    assert [] == extract(advice, Role.ASSISTANT)
    assert [] == extract("Yes, let's do that.", Role.USER)
    assert (DECISION, 0.8, "Use PostgreSQL for this use case", "database") == (
        found.type,
        found.confidence,
        found.content,
        found.subject,
    )


@pytest.mark.parametrize(
    "reply", ["No, let's not do that.", "Yes, but is it fast?", "Thanks!", "Let me think about it."]
)
def test_proposal_that_is_not_taken_up(reply: str) -> None:
    """Anything but plain agreement leaves it a proposal."""
    assert [] == [
        each
        for each in extract(reply, Role.USER, context="I recommend PostgreSQL.")
        if "PostgreSQL" in each.content and each.confidence >= PROMOTED
    ]


@pytest.mark.parametrize(
    ("advice", "expected"),
    [
        ("I suggest Redis for caching: it is simple.", "Use Redis for caching"),
        ("We should upgrade the driver first.", "Upgrade the driver first"),
        ("I recommend splitting the importer.", "Split the importer"),
        ("Shall we use Svelte?", "Use Svelte"),
        ("I suggest migrating to Kafka.", "Migrate to Kafka"),
    ],
)
def test_what_was_proposed_reads_as_an_order(advice: str, expected: str) -> None:
    """The memory stands alone, whatever the form of the advice."""
    assert expected == one("Agreed, let's do that.", context=advice).content


def test_of_several_proposals_none_is_taken() -> None:
    """It is not known which one was meant."""
    assert [] == extract("Agreed.", Role.USER, context="I recommend Vue. You should also drop the old API.")


def test_what_an_assistant_recalls_is_doubted() -> None:
    """It may be wrong about what the team decided, so it waits."""
    [found] = extract("We decided to use PostgreSQL.", Role.ASSISTANT)

    assert (["assistant"], True) == (found.doubts, found.confidence < PROMOTED)


def test_tools_and_systems_state_nothing() -> None:
    """What they print is nobody's decision."""
    assert [] == extract("We decided to use PostgreSQL.", Role.SYSTEM)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("We decided to use Postgres.", "database"),
        ("We chose MySQL as our database.", "database"),
        ("We're switching from MongoDB to PostgreSQL.", "database"),
        ("Instead of RabbitMQ we'll use Kafka.", "message queue"),
        ("We decided to use Redis for our message queue.", "message queue"),
        ("We decided to use Redis for caching.", "cache"),
        ("We decided to deploy on Kubernetes in Frankfurt.", "deployment target"),
        ("We switch the deployment from Kubernetes to one server with Docker Compose.", "deployment target"),
        ("We decided to switch the deployment from Kubernetes to a single server.", "deployment target"),
        ("We decided to move our database to a new server.", ""),
        ("We'll write the CLI in Go.", "language for cli"),
        ("We decided to migrate the users table to PostgreSQL.", "database for users table"),
        ("We decided to add an index in PostgreSQL.", ""),
        ("We decided against MongoDB.", ""),
        ("We chose React and Redis.", ""),
        ("We decided to move the deadline to 12 June.", "deadline"),
        ("The deadline for the design is 5 May.", "deadline for design"),
        ("The search API must respond within 200 ms.", "search api latency"),
        ("The API must have two owners.", ""),
        ("Deadline: 14 March", "deadline"),
        ("Loans run for two weeks.", "loan duration"),
        ("The board changed it: loans run for three weeks.", "loan duration"),
        ("I don't like Python.", ""),
    ],
)
def test_subject_is_given_only_where_it_is_plain(text: str, subject: str) -> None:
    """A wrong one would retire a memory that still holds."""
    assert subject == one(text).subject


def test_negative_decision_keeps_its_negation() -> None:
    """A refusal of X must not be read as a decision for X."""
    found = one("We decided against MongoDB.")

    assert ("We decided against MongoDB", True) == (found.content, "rejected" in found.tags)


def test_change_of_plan_is_marked() -> None:
    """Readers tell a pivot from a first decision."""
    assert "pivot" in one("Scrap that, we're using Svelte instead.").tags


def test_each_clause_is_a_statement_of_its_own() -> None:
    """A decision and a constraint in one sentence are two memories, each standing alone."""
    found = extract("OK, we chose Vue for the frontend, and backups must be encrypted.", Role.USER)

    assert [(DECISION, "We chose Vue for the frontend"), (CONSTRAINT, "Backups must be encrypted")] == [
        (each.type, each.content) for each in found
    ]


def test_long_content_is_cut_at_a_word() -> None:
    """A memory stays a sentence, however long the sentence was."""
    content = one(f"We decided to use {'exceptionally ' * 24}old servers.").content

    assert len(content) <= MAX_CONTENT_CHARS
    assert content.endswith("exceptionally…")


def test_lexicon_holds_together() -> None:
    """Each slot that a noun names or a category counts can be filled or measured; no name is in capitals."""
    slots = {slot for slot, _ in TECHNOLOGIES.values()}
    measured = {"budget", "deadline", "launch date", "release date", "team size"}

    assert set() == set(SLOTS.values()) - slots
    assert set() == set(CATEGORIES_OF_SLOTS) - slots - measured
    assert [] == [name for name in TECHNOLOGIES if name != name.casefold()]
