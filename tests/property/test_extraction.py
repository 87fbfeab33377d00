"""Promises of the rules for any message: what they extract, and the memories that they make."""

from hypothesis import example, given
from hypothesis import strategies as st

from models.app.composing import compose
from models.app.rules import decide, merged_into, oldest, refusal
from models.events import Position
from models.events.app import NotableKind, NotableSentence
from models.events.base import Role
from models.language.notable import notables_of
from models.language.statements.extraction import MAX_CONTENT_CHARS, MAX_FOUND, extract
from models.language.statements.spoken import written_out
from models.language.statements.subjects import MAX_SUBJECT_CHARS, MAX_TAGS
from models.policy.app import AppPolicy
from models.policy.project import LongTermPolicy
from models.state.buffer import BufferedTurn
from tests.support.app_driver import ended
from tests.support.data_files import data_file
from tests.support.session_driver import NOON
from tests.unit.test_app_memories import memory

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


PHRASES = (
    "I", "I've", "we", "decided", "to", "prefer", "let's", "go with", "not", "my", "deadline", "is", "Nov 1", "2pm",
    "if", "maybe", "you", "booked", "the", "problem was", ".", "!", "?", ",", "\n", "…", "Ünï", "\U0001f984", '"',
    "```", "x" * 90,
)  # fmt: skip
SAID = st.one_of(st.lists(st.sampled_from(PHRASES), max_size=40).map(" ".join), st.text(max_size=80))
POLICIES = st.builds(
    AppPolicy,
    sentences=st.integers(1, 8),
    content_chars=st.integers(40, 200),
    notable_chars=st.integers(40, 300),
    redundant_similarity=st.floats(0, 1),
)
SPOKEN = st.lists(st.tuples(st.sampled_from(list(Role)), SAID), max_size=6)
KEPT = st.tuples(SAID, st.floats(0, 1), st.booleans(), st.integers(-5, 400))


@given(SPOKEN, SAID, POLICIES)
def test_memories_fit_and_ask_nothing(spoken: list[tuple[Role, str]], summary: str, policy: AppPolicy) -> None:
    """Notable sentences and memories are as long as the policy says at the most, and are no questions."""
    turns = [BufferedTurn(number, role, content, NOON, None) for number, (role, content) in enumerate(spoken)]
    notables = notables_of(turns, policy)
    odd = [
        NotableSentence(NotableKind.FACT, role, number, content, 0.5) for number, (role, content) in enumerate(spoken)
    ]
    for found in (notables, odd):
        told = {"turn_count": len(spoken), "key_topics": ["boat"], "notables": found}
        event = ended(summary, "s", Position("t", 0, 0), NOON, **told)
        draft = compose(event, policy)

        assert draft == compose(event, policy)
        if draft is not None:
            assert 0 < len(draft.content) <= policy.content_chars
            assert 0 <= draft.importance <= 1
            assert len(draft.tags) <= policy.tags
    assert all(0 < len(notable.text) <= policy.notable_chars and 0 <= notable.weight <= 1 for notable in notables)
    assert all(notable.role in {Role.USER, Role.ASSISTANT} and notable.text[-1] != "?" for notable in notables)


@given(st.lists(KEPT, min_size=11, max_size=11), POLICIES)
def test_decisions_can_be_carried_out(kept: list[tuple[str, float, bool, int]], policy: AppPolicy) -> None:
    """Whatever the memories say; only where two are free, as the policy of pins ensures."""
    memories = [
        memory(number, content, importance=importance, pinned=pinned and number < 9, days=days)
        for number, (content, importance, pinned, days) in enumerate(kept, 1)
    ]
    known, new = memories[:10], memories[10]
    made = decide(known, new, NOON, policy)

    assert refusal(made, known, new, policy) == ""
    assert made == decide(known[::-1], new, NOON, policy)
    assert refusal(oldest(known, new), known, new, policy) == ""
    if made.action == "edit":
        assert merged_into(made, known, new) == made.merged_memory_id
