"""What holds for every memory that rules make or decide on, whatever was said."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from models.app.composing import compose
from models.app.rules import decide, merged_into, oldest, refusal
from models.events import Position, Role
from models.events.app import NotableKind, NotableSentence
from models.language.notable import notables_of
from models.policy.app import AppPolicy
from models.state.buffer import BufferedTurn
from tests.support.app_driver import ended
from tests.support.session_driver import NOON
from tests.unit.test_app_memories import memory

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
