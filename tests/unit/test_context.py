"""The source's prompt texts letter by letter, and what a token budget leaves of them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.events.user import EpisodeCompressed, FactChanged
from models.retrieval.context import MIN_TOKENS, fit_prompt, format_for_injection, long_term_prompt
from models.text.words import estimate_tokens
from streams.index import collections
from tests.support.golden_text import assert_text


def fact(key: str, value: str) -> FactChanged:
    """A fact as a prompt shows it."""
    return collections.FACTS.event_of({"category": "identity", "key": key, "value": value})


def episode(turn_range: str, summary: str) -> EpisodeCompressed:
    """An episode as a prompt shows it."""
    return collections.EPISODES.event_of({"turn_range": turn_range, "summary": summary})


@dataclass(frozen=True)
class Said:
    """A turn as a prompt shows it."""

    role: str
    content: str


FACTS = [fact("name", "Alex"), fact("language", "Python"), fact("coding_style", "black with line length 100")]
EPISODES = [
    episode("turns 1-10", "User asked about vector databases. Discussed FAISS vs pgvector"),
    episode("turns 21-30", "Conversation about retrieval systems and embeddings"),
]
RECENT = [Said("user", "What did we discuss about databases?"), Said("assistant", "...")]
texts = st.text(max_size=300)
facts_of = st.lists(st.builds(fact, st.text(max_size=64), texts), max_size=6)
episodes_of = st.lists(st.builds(episode, st.just("turns 1-20"), texts), max_size=4)
recent_of = st.lists(st.builds(Said, st.sampled_from(["user", "assistant", "system", "tool"]), texts), max_size=6)
budgets = st.integers(MIN_TOKENS, 700)


def test_the_prompt_is_the_seeds() -> None:
    """User memory, "Final Prompt Injection", with its own example."""
    assert_text("user-prompt", long_term_prompt(FACTS, EPISODES, RECENT))


def test_the_injection_is_the_seeds() -> None:
    """User memory, stage 3: headings stay without entries, and a summary is cut at 150 characters."""
    assert format_for_injection([], []) == "## User Profile\n\n## Recent Context"
    assert format_for_injection(FACTS[:1], [episode("turns 1-20", "x" * 151)]) == (
        f"## User Profile\n- name: Alex\n\n## Recent Context\n- turns 1-20: {'x' * 150}..."
    )


def test_facts_come_before_turns_and_turns_before_episodes() -> None:
    """A budget that has room for one more line than the facts and the last turn gives it to the turn before."""
    recent = [Said("user", "a" * 60), Said("assistant", "b" * 60), Said("user", "c" * 60)]
    whole = long_term_prompt(FACTS, (), recent[1:])
    fitted = fit_prompt(FACTS, EPISODES, recent, token_budget=estimate_tokens(whole))

    assert (fitted.prompt, fitted.facts, fitted.episodes, fitted.recent) == (whole, 3, 0, 2)


def test_a_last_turn_that_is_too_long_is_cut() -> None:
    """It is what the answer is to: its beginning stays, with an ellipsis, up to the last token."""
    fitted = fit_prompt(FACTS, EPISODES, [*RECENT, Said("user", "why " * 1_000)], token_budget=100)

    assert (fitted.tokens, fitted.recent, fitted.last_turn_cut) == (100, 1, True)
    assert "\nuser: why why" in fitted.prompt
    assert "…\n\nAnswer consistently" in fitted.prompt


def test_a_budget_below_the_least_is_refused() -> None:
    """Rather than a prompt above it."""
    with pytest.raises(ValueError, match="at least 64"):
        fit_prompt([], [], [], token_budget=MIN_TOKENS - 1)


@given(facts_of, episodes_of, recent_of, budgets)
def test_a_prompt_is_never_above_its_budget(
    facts: list[FactChanged], episodes: list[EpisodeCompressed], recent: list[Said], budget: int
) -> None:
    """Whatever is remembered; the tokens are the prompt's, and the counts say exactly what it holds of each order.

    Facts are guaranteed: an episode is in only if every fact is. The last turn is always there.
    """
    fitted = fit_prompt(facts, episodes, recent, token_budget=budget)
    kept = recent[len(recent) - fitted.recent :]
    whole = long_term_prompt(facts[: fitted.facts], episodes[: fitted.episodes], kept)

    assert fitted.tokens == estimate_tokens(fitted.prompt) <= budget
    assert fitted.facts == len(facts) or fitted.episodes == 0
    assert (fitted.recent > 0) == (len(recent) > 0)
    assert not fitted.last_turn_cut or (fitted.recent, fitted.episodes) == (1, 0)
    if fitted.last_turn_cut:
        head, _, tail = fitted.prompt.rpartition("…")
        assert whole.startswith(head)
        assert tail == "\n\nAnswer consistently using the memory and conversation above."
    else:
        assert fitted.prompt == whole
