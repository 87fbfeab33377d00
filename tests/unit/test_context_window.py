"""The context window: shares, order, what did not fit; token counters."""

from datetime import timedelta

import pytest
import tiktoken
from msgspec.structs import replace

from models.errors import ConfigurationError
from models.events.project_items import MemoryType
from models.policy.project import ContextPolicy
from models.retrieval.context_window import BuiltContext, ContextInputs, ContextMessage, build_context
from models.text.words import estimate_tokens
from streams.inference.tokens import token_counter
from tests.support.golden_text import assert_text
from tests.support.project_found import BEGIN, chunk, episode, found, memory


def by_lines(text: str) -> int:
    """Every line that is not empty is ten tokens, headings nothing."""
    return 10 * sum(bool(line) and not line.startswith("#") for line in text.split("\n"))


def messages(count: int) -> list[ContextMessage]:
    """Turns of one line each."""
    return [
        ContextMessage(turn=n, role="user" if n % 2 == 0 else "assistant", content=f"said {n}") for n in range(count)
    ]


def built(available: int, *, recent: int = 0, memories: int = 0, chunks: int = 0, **options: float) -> BuiltContext:
    """A context of items of ten tokens each."""
    policy = ContextPolicy(total_tokens=available + 100, system_tokens=50, working_tokens=50, **options)  # type: ignore[arg-type]
    inputs = ContextInputs(
        recent=messages(recent),
        memories=[found(memory(n, f"fact {n}"), 0.9 - n / 100) for n in range(memories)],
        chunks=[chunk(n, f"gist {n}") for n in range(chunks)],
    )
    return build_context(inputs, policy, by_lines)


def counts(context: BuiltContext) -> dict[str, int]:
    """Items of each section."""
    sections = [item.section for item in context.items]
    return {section: sections.count(section) for section in ("recent", "memories", "chunks")}


@pytest.mark.behaviour("project-01", "project-11", "project-27")
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ((9, 9, 9), (6, 4, 0)),  # nobody leaves anything
        ((2, 9, 9), (2, 8, 0)),  # complete messages leave it to memories
        ((2, 2, 9), (2, 2, 6)),  # complete memories to chunks
        ((9, 2, 1), (7, 2, 1)),  # and what those leave goes to older messages
        ((9, 2, 9), (6, 2, 2)),  # but not before all chunks are in
    ],
)
def test_what_a_complete_section_leaves_is_used(wanted: tuple[int, int, int], expected: tuple[int, int, int]) -> None:
    """A hundred tokens are ten items, 60 and 40 of them for messages and memories."""
    recent, memories, chunks = wanted
    context = built(100, recent=recent, memories=memories, chunks=chunks)

    assert dict(zip(("recent", "memories", "chunks"), expected, strict=True)) == counts(context)


@pytest.mark.behaviour("project-12")
def test_what_goes_in_first() -> None:
    """The newest messages and chunks and the most relevant memories, told in order of time."""
    context = built(90, recent=6, memories=3, chunks=3, recent_share=0.4)
    priorities = [item.priority for item in context.items if item.section == "recent"]

    assert [(item.section, item.id) for item in context.items] == [
        *(("memories", f"m-00{n}") for n in range(3)),
        *(("chunks", f"k-{n}") for n in (1, 2)),
        *(("recent", str(n)) for n in (3, 4, 5)),
    ]
    assert priorities == sorted(priorities)
    assert priorities[-1] == 0.9
    assert [item.priority for item in context.items if item.section == "memories"] == [0.9, 0.89, 0.88]


@pytest.mark.behaviour("project-12")
def test_a_message_is_never_cut() -> None:
    """One that is too long is named, and ends its section though older ones are short: a larger budget gets it back."""
    inputs = ContextInputs(recent=[*messages(2), ContextMessage(turn=2, role="user", content="ü" * 4_000)])
    policy = ContextPolicy(total_tokens=700, system_tokens=50, working_tokens=50)
    context = build_context(inputs, policy, estimate_tokens)

    assert (context.items, context.text) == ([], "")
    assert context.warnings == ["3 of 3 recent messages did not fit, turns 2, 1, 0"]


@pytest.mark.behaviour("project-12")
def test_the_layout() -> None:
    """System prompt, memories, what was earlier, the conversation; a memory is one line, whatever it holds."""
    decided = memory(1, "Use\n## SQLite", kind=MemoryType.DECISION)
    inputs = ContextInputs(
        system_prompt="Be brief.\n",
        recent=[ContextMessage(turn=0, role="user", content="Hi\nthere ")],
        memories=[
            replace(found(decided), contradicted_by=["m-002"]),
            found(episode(1, "Chose a store", at=BEGIN + timedelta(days=1))),
        ],
        chunks=[chunk(0, "They met.")],
    )

    assert_text("project-context", build_context(inputs, ContextPolicy(), estimate_tokens).text)


def test_a_chunk_that_was_retrieved_is_not_told_twice() -> None:
    """It stands among the memories, by its relevance."""
    inputs = ContextInputs(memories=[found(chunk(1, "They met."))], chunks=[chunk(1, "They met."), chunk(2, "Then.")])
    context = build_context(inputs, ContextPolicy(), estimate_tokens)

    assert [(item.section, item.id) for item in context.items] == [("memories", "k-1"), ("chunks", "k-2")]


def test_a_system_prompt_beyond_its_reserve_takes_of_the_rest() -> None:
    """Said, and the shares become smaller."""
    policy = ContextPolicy(total_tokens=200, system_tokens=10, working_tokens=50)
    context = build_context(ContextInputs(system_prompt="rule " * 40), policy, estimate_tokens)

    assert (context.budget.system_prompt, context.budget.available) == (50, 100)
    assert context.warnings == ["the system prompt takes 50 tokens, 10 are reserved for it"]


LETTERS = tiktoken.Encoding(
    "letters",
    pat_str=r"[a-z]+|\s*[\r\n]+|\s+|.",
    mergeable_ranks={**{bytes([n]): n for n in range(256)}, b"wo": 256, b"rd": 257, b"word": 258, b"\n\n": 259},
    special_tokens={"<|endoftext|>": 260},
)
"""A vocabulary small enough to write down."""


def test_how_tokens_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default four characters, rounded up; by tiktoken as its encoding does: a special token is text like any."""
    assert [token_counter()(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]
    monkeypatch.setattr(tiktoken, "get_encoding", lambda _: LETTERS)
    count = token_counter("tiktoken:letters")

    assert (count("word word"), count("<|endoftext|>")) == (3, 13)


def test_a_vocabulary_that_cannot_be_had_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network, with what to do."""

    def get_encoding(_: str) -> tiktoken.Encoding:
        raise ConnectionError("no route")

    monkeypatch.setattr(tiktoken, "get_encoding", get_encoding)

    with pytest.raises(ConfigurationError, match="TIKTOKEN_CACHE_DIR"):
        token_counter("tiktoken:o200k_base")
