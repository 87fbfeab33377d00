"""Promises of the extraction that hold for any message."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from models.events.base import Role
from models.language.statements.extraction import MAX_CONTENT_CHARS, MAX_FOUND, extract
from models.language.statements.spoken import written_out
from models.language.statements.subjects import MAX_SUBJECT_CHARS, MAX_TAGS
from models.policy.project import LongTermPolicy
from tests.support.data_files import data_file

_STATEMENTS = st.sampled_from(data_file("project_statements")["plain"])
_PIECES = st.one_of(
    st.text(max_size=40), _STATEMENTS, st.sampled_from(["\n", "```", "> ", '"', ". ", ", and ", "İ", "?"])
)
_MESSAGES = st.lists(_PIECES, max_size=30).map("".join)


@given(_MESSAGES, st.sampled_from(list(Role)), _MESSAGES)
@example("Goals:\n" + "- a: b, c; d -> e\n" * 9_000, Role.USER, "")
@example("a: " * 190 + "no " * 190, Role.USER, "")
@example("We decided to use PostgreSQL. " * 400, Role.USER, "")
@example("we " * 80_000, Role.USER, "we should " * 20_000)
@example("x" * 200_000, Role.USER, "")
def test_statements_fit_a_memory_and_are_the_same_each_time(content: str, role: Role, context: str) -> None:
    """Whatever is said, what is found fits its bounds, is nothing twice, and a replay finds the same."""
    found = extract(content, role, context=context)

    assert extract(content, role, context=context) == found
    assert len(found) <= MAX_FOUND
    assert len({(each.type, each.content) for each in found}) == len(found)
    for each in found:
        assert 0 < len(each.content) <= MAX_CONTENT_CHARS
        assert 0 < each.confidence <= 1
        assert len(each.subject) <= MAX_SUBJECT_CHARS
        assert len(each.tags) <= MAX_TAGS
        assert all(0 < len(tag) <= 64 for tag in each.tags)


@given(_MESSAGES)
def test_spelling_is_written_out_once(text: str) -> None:
    """A second pass changes nothing, so a retold memory stays as it is."""
    once = written_out(text)

    assert once == written_out(once)


@given(_STATEMENTS)
def test_what_is_asked_or_pasted_is_never_kept(statement: str) -> None:
    """Any statement with a question mark, in a fence or behind a quote sign becomes no memory."""
    promoted = LongTermPolicy().promote_from
    texts = (f"{statement}?", f"```\n{statement}\n```", f"> {statement}.\n")

    assert [] == [each for text in texts for each in extract(text, Role.USER) if each.confidence >= promoted]


@given(_STATEMENTS, st.sampled_from(["maybe ", "suppose ", "they said ", "back then "]))
def test_doubt_never_makes_surer(statement: str, doubt: str) -> None:
    """A doubtful opening lowers the confidence of what is said, or nothing is found."""
    plain = max(each.confidence for each in extract(statement, Role.USER))
    doubtful = [each.confidence for each in extract(doubt + statement, Role.USER)]

    assert all(confidence <= plain for confidence in doubtful)
