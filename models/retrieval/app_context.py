"""Memories of an app as a language model is told of them (app memory, "Memory Context Format").

`format_app_memories` writes the source's layout, `fit_app_memories` chooses what goes in when not everything does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from models.events.app import AppMemoryChanged

_ABOUT = "The following are memories from previous conversations with this app:"
_CLOSING = "Use these memories to provide context-aware responses."


class FittedMemories(NamedTuple):
    """The text that goes into a prompt, and how many of the memories, from the first on, are in it."""

    text: str
    memories: int


def format_app_memories(app_name: str, memories: Sequence[AppMemoryChanged]) -> str:
    r"""Memories in the order given, exactly as the source writes them; nothing for none.

    A memory takes one line, whatever it holds: what was remembered must not look like another memory, or like the
    closing line.

    >>> format_app_memories("shop", [])
    ''
    """
    if not memories:
        return ""
    lines = (f"{number}. {_line(memory)}" for number, memory in enumerate(memories, start=1))
    return "\n".join([f"(memories for app: {app_name})", _ABOUT, "", *lines, "", _CLOSING])


def fit_app_memories(
    app_name: str, memories: Sequence[AppMemoryChanged], *, most: int, contents_chars: int, text_chars: int
) -> FittedMemories:
    """The first memories that fit, whole and without gaps.

    Args:
        app_name: Whose.
        memories: In the order in which they are to stand (app memory: the latest updated first).
        most: How many at most.
        contents_chars: Characters of all their contents together (app memory, ~2,000).
        text_chars: Characters of the whole text.
    """
    for n in range(min(most, len(memories)), 0, -1):
        kept = memories[:n]
        if sum(len(memory.content) for memory in kept) <= contents_chars:
            text = format_app_memories(app_name, kept)
            if len(text) <= text_chars:
                return FittedMemories(text, n)
    return FittedMemories("", 0)


def _line(memory: AppMemoryChanged) -> str:
    return f"[Created: {memory.created_at:%Y-%m-%d}] {' '.join(memory.content.split())}"
