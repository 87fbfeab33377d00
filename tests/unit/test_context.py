"""The source's prompt texts letter by letter, of users and apps, and what a token budget leaves of them."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from models.events.app import AppMemoryChanged
from models.events.user import EpisodeCompressed, FactChanged
from models.retrieval import context
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
    turn: int = 0
    timestamp: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)
    session_id: str = "s"


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
found_of = st.lists(
    st.builds(
        Said,
        st.just("user"),
        texts,
        st.integers(0, 9),
        st.integers(0, 9**9).map(lambda at_s: datetime.fromtimestamp(at_s, UTC)),
        st.sampled_from("st"),
    ),
    max_size=6,
)
budgets = st.integers(MIN_TOKENS, 700)


@pytest.mark.behaviour("user-21")
def test_the_prompt_is_the_seeds() -> None:
    """User memory, "Final Prompt Injection", with its own example."""
    assert_text("user-prompt", long_term_prompt(FACTS, EPISODES, RECENT))


@pytest.mark.behaviour("user-21")
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


def test_a_budget_below_the_least_is_refused() -> None:
    """Rather than a prompt above it."""
    with pytest.raises(ValueError, match="at least 64"):
        fit_prompt([], [], [], token_budget=MIN_TOKENS - 1)


@given(facts_of, episodes_of, recent_of, found_of, budgets)
def test_found_turns_take_what_is_left(
    facts: list[FactChanged], episodes: list[EpisodeCompressed], recent: list[Said], found: list[Said], budget: int
) -> None:
    """Whatever they are, the budget holds, and nothing else of the prompt changes for them."""
    without = fit_prompt(facts, episodes, recent, token_budget=budget)
    fitted = fit_prompt(facts, episodes, recent, token_budget=budget, found=found, found_chars=100)
    head, _, tail = fitted.prompt.partition("\n\n## Said Before\n") if fitted.found else (fitted.prompt, "", "")
    lines = tail.splitlines()[: fitted.found] if fitted.found else []

    assert fitted.tokens == estimate_tokens(fitted.prompt) <= budget
    assert replace(fitted, prompt="", tokens=0, found=0) == replace(without, prompt="", tokens=0, found=0)
    assert fitted.facts == len(facts) or fitted.found == 0
    assert "\n".join([head, *tail.split("\n")[fitted.found :]] if fitted.found else [head]) == without.prompt
    assert lines == sorted(lines, key=lambda line: line[3:19])
    assert all(len(line.partition("] user: ")[2]) <= 100 for line in lines)


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


def memory(content: str, created_at: datetime = datetime(2025, 10, 10, 14, 30, tzinfo=UTC)) -> AppMemoryChanged:
    """A memory as a prompt shows it."""
    made = collections.MEMORIES.event_of({"space": "app", "content": content})
    return structs.replace(made, created_at=created_at)


def fitted(
    memories: list[AppMemoryChanged], *, most: int = 10, contents: int = 2_000, text: int = 4_000
) -> context.FittedMemories:
    """What fits of an app's memories."""
    return context.fit_app_memories("a", memories, memories, most=most, contents_chars=contents, text_chars=text)


@pytest.mark.behaviour("app-15")
@pytest.mark.parametrize(
    ("contents", "text", "n"), [(1_000, 4_000, 2), (999, 4_000, 1), (2_000, 700, 1), (2_000, 9, 0)]
)
def test_only_whole_memories_go_in(contents: int, text: int, n: int) -> None:
    """The first ones, without gaps, within both limits."""
    memories = [memory("a" * 400), memory("b" * 600), memory("c")]
    found = fitted(memories, contents=contents, text=text)

    assert (found.text, list(found.memories)) == (context.format_app_memories("a", memories[:n]), memories[:n])


@given(st.integers(context.MIN_TOKENS, 1_000), st.lists(st.text(max_size=300), max_size=12), st.text(max_size=500))
def test_the_budget_counts_the_memories(budget: int, contents: list[str], last: str) -> None:
    """Whatever is remembered: the prompt keeps its budget, and memories take half of it at most."""
    preface, _ = fitted([memory(content) for content in contents], text=context.preface_room(budget))
    found = context.fit_prompt([], [], [Said("user", last)], token_budget=budget, preface=preface)

    assert found.tokens == estimate_tokens(found.prompt) <= budget
    assert len(preface) <= budget * 2
    assert found.recent == 1
