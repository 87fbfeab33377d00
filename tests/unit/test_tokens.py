"""Token counters: the default, tiktoken's where it can be had, and clear errors where not."""

from __future__ import annotations

import pytest
import tiktoken

from models.errors import ConfigurationError
from models.policy.project import ContextPolicy
from models.retrieval.context_window import ContextInputs, ContextMessage, build_context
from streams.inference.tokens import token_counter
from tests.support.project_found import chunk, found, memory

LETTERS = tiktoken.Encoding(
    "letters",
    pat_str=r"[a-z]+|\s*[\r\n]+|\s+|.",
    mergeable_ranks={**{bytes([n]): n for n in range(256)}, b"wo": 256, b"rd": 257, b"word": 258, b"\n\n": 259},
    special_tokens={"<|endoftext|>": 260},
)
"""A vocabulary small enough to write down."""


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiktoken has this encoding."""
    monkeypatch.setattr(tiktoken, "get_encoding", lambda _: LETTERS)


def test_about_four_characters_by_default() -> None:
    """Rounded up."""
    assert [token_counter()(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]


@pytest.mark.usefixtures("letters")
def test_tiktoken_counts_as_its_encoding_does() -> None:
    """What looks like a special token is text like any: people say what they like."""
    count = token_counter("tiktoken:letters")

    assert (count("word word"), count("<|endoftext|>")) == (3, 13)


@pytest.mark.usefixtures("letters")
def test_a_context_counted_so_is_within_its_budget() -> None:
    """Its lines, counted one by one, are not fewer tokens than the whole."""
    count = token_counter("tiktoken:letters")
    inputs = ContextInputs(
        system_prompt="word\n\nword",
        recent=[ContextMessage(turn=n, role="user", content="word\n\n  word \n" * n) for n in range(5)],
        memories=[found(memory(n, "word " * n + ".")) for n in range(5)],
        chunks=[chunk(n, "word") for n in range(5)],
    )
    context = build_context(inputs, ContextPolicy(), count)

    assert len(context.items) == 16
    assert 0 < count(context.text) <= context.total_tokens


def test_a_vocabulary_that_cannot_be_had_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network, with what to do."""

    def get_encoding(_: str) -> tiktoken.Encoding:
        raise ConnectionError("no route")

    monkeypatch.setattr(tiktoken, "get_encoding", get_encoding)

    with pytest.raises(ConfigurationError, match="TIKTOKEN_CACHE_DIR"):
        token_counter("tiktoken:o200k_base")
