"""The context window: never over budget, more of everything with more budget, the same for the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.policy.project import ContextPolicy
from models.retrieval.context_window import ContextInputs, ContextMessage, TokenCounter, build_context, scaled_to
from models.text.words import estimate_tokens
from tests.support.project_found import chunk, found, memory

LENGTHS = st.lists(st.integers(0, 120), max_size=6)


def by_words(text: str) -> int:
    """A counter of another kind: every word and line break is a token."""
    return len(text.split()) + text.count("\n")


COUNTERS = st.sampled_from([estimate_tokens, by_words])


@st.composite
def inputs(draw: st.DrawFn) -> ContextInputs:
    """Messages, memories and chunks of any lengths."""
    said, known, earlier = draw(LENGTHS), draw(LENGTHS), draw(LENGTHS)
    return ContextInputs(
        system_prompt="rule " * draw(st.integers(0, 20)),
        recent=[ContextMessage(turn=n, role="user", content="word " * length) for n, length in enumerate(said)],
        memories=[found(memory(n, "fact " * length + ".")) for n, length in enumerate(known)],
        chunks=[chunk(n, "gist " * length) for n, length in enumerate(earlier)],
    )


@st.composite
def policies(draw: st.DrawFn) -> ContextPolicy:
    """Windows of a size at which some things fit and others do not; the system prompt always does."""
    system, working = draw(st.integers(0, 60)), draw(st.integers(0, 60))
    total = system + working + 200 + draw(st.integers(1, 1_500))
    share = draw(st.floats(0, 1))
    return ContextPolicy(total_tokens=total, system_tokens=system, working_tokens=working, recent_share=share)


@pytest.mark.behaviour("project-01")
@given(inputs(), policies(), COUNTERS)
def test_never_over_budget(given_inputs: ContextInputs, policy: ContextPolicy, tokens: TokenCounter) -> None:
    """Neither the sum of the items, nor the text that is made of them; the current turn's reserve stays free."""
    context = build_context(given_inputs, policy, tokens)

    assert tokens(context.text) <= context.total_tokens == context.budget.used
    assert context.total_tokens + policy.working_tokens <= policy.total_tokens
    assert sum(item.tokens for item in context.items) == context.total_tokens


@given(inputs(), policies(), COUNTERS, st.integers(1, 40))
def test_a_larger_budget_loses_nothing(
    given_inputs: ContextInputs, policy: ContextPolicy, tokens: TokenCounter, more: int
) -> None:
    """What is in stays in, whether the total alone grows or the reserves with it."""
    for larger in (
        scaled_to(policy, policy.total_tokens + more),
        ContextPolicy(
            total_tokens=policy.total_tokens + more,
            system_tokens=policy.system_tokens,
            working_tokens=policy.working_tokens,
            recent_share=policy.recent_share,
        ),
    ):
        smaller = {(item.section, item.id) for item in build_context(given_inputs, policy, tokens).items}

        assert smaller <= {(item.section, item.id) for item in build_context(given_inputs, larger, tokens).items}


@given(inputs(), policies(), COUNTERS)
def test_the_same_is_the_same_and_nothing_is_dropped_silently(
    given_inputs: ContextInputs, policy: ContextPolicy, tokens: TokenCounter
) -> None:
    """Every item is either in the context or in a warning."""
    context = build_context(given_inputs, policy, tokens)
    named = {
        (section, item_id)
        for section, what in (("recent", "recent messages"), ("memories", "memories"), ("chunks", "chunk summaries"))
        for warning in context.warnings
        if f" {what} did not fit" in warning
        for item_id in warning.split(" fit, ")[1].split(" ", 1)[1].split(", ")
    }
    kept = {(item.section, item.id) for item in context.items if item.section != "system"}

    assert context == build_context(given_inputs, policy, tokens)
    assert not kept & named
    assert kept | named == {
        *(("recent", str(message.turn)) for message in given_inputs.recent),
        *(("memories", each.id) for each in given_inputs.memories),
        *(("chunks", each.id) for each in given_inputs.chunks),
    }
