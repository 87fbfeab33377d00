"""Memories of an app in a prompt: the source's text letter by letter, and what goes in when not all of it fits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from models.events.app import AppMemoryChanged
from models.retrieval import context
from models.text.words import estimate_tokens
from streams.index import collections


def memory(content: str, created_at: datetime = datetime(2025, 10, 10, 14, 30, tzinfo=UTC)) -> AppMemoryChanged:
    """A memory as a prompt shows it."""
    made = collections.MEMORIES.event_of({"space": "app", "content": content})
    return replace(made, created_at=created_at)


@dataclass(frozen=True)
class Said:
    """A turn as a prompt shows it."""

    role: str
    content: str


MEMORIES = [
    memory("User prefers meetings after 2pm on weekdays."),
    memory(
        'User is working on a project called "Phoenix" with deadline Nov 1.', datetime(2025, 10, 9, 8, 0, tzinfo=UTC)
    ),
    memory(
        "User experienced database connection issues, resolved by restarting service.",
        datetime(2025, 10, 8, 23, 59, tzinfo=UTC),
    ),
]
SEED_TEXT = """\
(memories for app: calendar)
The following are memories from previous conversations with this app:

1. [Created: 2025-10-10] User prefers meetings after 2pm on weekdays.
2. [Created: 2025-10-09] User is working on a project called "Phoenix" with deadline Nov 1.
3. [Created: 2025-10-08] User experienced database connection issues, resolved by restarting service.

Use these memories to provide context-aware responses."""


def fitted(
    memories: list[AppMemoryChanged], *, most: int = 10, contents: int = 2_000, text: int = 4_000
) -> context.FittedMemories:
    """What fits of an app's memories."""
    return context.fit_app_memories("a", memories, memories, most=most, contents_chars=contents, text_chars=text)


def test_the_text_is_the_seeds() -> None:
    """App memory, Memory Context Format, with its own example."""
    assert context.format_app_memories("calendar", MEMORIES) == SEED_TEXT


@pytest.mark.parametrize(
    ("contents", "text", "n"), [(1_000, 4_000, 2), (999, 4_000, 1), (2_000, 700, 1), (2_000, 9, 0)]
)
def test_only_whole_memories_go_in(contents: int, text: int, n: int) -> None:
    """The first ones, without gaps, within both limits."""
    memories = [memory("a" * 400), memory("b" * 600), memory("c")]
    found = fitted(memories, contents=contents, text=text)

    assert (found.text, list(found.memories)) == (context.format_app_memories("a", memories[:n]), memories[:n])


def test_the_text_stands_first_in_the_prompt() -> None:
    """Before the source's prompt for a user, which is what it was without it."""
    recent = [Said("user", "When do we meet?")]
    without = context.fit_prompt([], [], recent, token_budget=2_000)
    found = context.fit_prompt([], [], recent, token_budget=2_000, preface=SEED_TEXT)

    assert found.prompt == f"{SEED_TEXT}\n\n{without.prompt}"


@given(st.integers(context.MIN_TOKENS, 1_000), st.lists(st.text(max_size=300), max_size=12), st.text(max_size=500))
def test_the_budget_counts_the_memories(budget: int, contents: list[str], last: str) -> None:
    """Whatever is remembered: the prompt keeps its budget, and memories take half of it at most."""
    preface, _ = fitted([memory(content) for content in contents], text=context.preface_room(budget))
    found = context.fit_prompt([], [], [Said("user", last)], token_budget=budget, preface=preface)

    assert found.tokens == estimate_tokens(found.prompt) <= budget
    assert len(preface) <= budget * 2
    assert found.recent == 1
