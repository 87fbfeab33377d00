"""A memory of an app, or of a user in one, as the state of its space keeps it."""

from collections.abc import Collection, Mapping
from datetime import datetime

from msgspec import Struct

from models.events.app import MemoryToKeep
from models.language.contradiction import Facts, facts_of
from models.state.seen import MOST_SHORT_IDS, SHORT_ID, short_id, split_ids

TAG_CHARS = 64
FACTS_CHARS = 1_024
"""Of the facts that are kept with a memory."""


class KeptMemory(Struct, frozen=True, array_like=True):
    """A memory as the state keeps it. Fields as in `models.events.app.AppMemoryChanged`."""

    memory_id: int
    content: str
    importance: float
    tags: tuple[str, ...]
    session_id: str
    user_id: str
    last_turn: int
    """Of the session, when it was last remembered."""
    related: tuple[str, ...]
    """Conversations that went into it besides."""
    created_at: datetime
    updated_at: datetime
    made_by: str
    pinned: bool = False
    shared_with: tuple[str, ...] = ()
    conflicts_with: tuple[int, ...] = ()
    unnamed: bytes = b""
    """Short ids of conversations that went into it too, beyond those that are named."""
    facts: tuple[dict[str, str], ...] | None = None
    """What each sentence of the content says of its user (`contradiction.facts_of`): to find it costs most of what
    becomes of a memory. None where that would be too large, or an older release wrote it: found when it is needed."""

    def is_of(self, session_ids: Collection[str]) -> bool:
        """True if one of the conversations went into it, or may have where too many did to tell."""
        if self.session_id in session_ids or any(name in session_ids for name in self.related):
            return True
        if len(self.unnamed) >= MOST_SHORT_IDS * SHORT_ID:
            return True
        unnamed = split_ids(self.unnamed)
        return bool(unnamed) and any(short_id(name) in unnamed for name in session_ids)

    def to_keep(self) -> MemoryToKeep:
        """Form in which deciders on a compaction see it."""
        return MemoryToKeep(
            memory_id=self.memory_id,
            content=self.content,
            importance=self.importance,
            pinned=self.pinned,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


def facts_to_keep(content: str, known: Mapping[str, Facts]) -> tuple[dict[str, str], ...] | None:
    """The facts of a content's sentences, if they are small enough to be kept.

    >>> facts_to_keep("User lives in Oslo. The cup is blue.", {})
    ({'identity location': 'Oslo'}, {})
    """
    facts = tuple(dict(each) for each in facts_of(content, known))
    chars = sum(len(of) + len(value) + 2 for each in facts for of, value in each.items()) + len(facts)
    return facts if chars <= FACTS_CHARS else None


def paragraph(text: str) -> str:
    """On one line, as it stands in a prompt.

    >>> paragraph(" Likes tea.  Drinks it black. ")
    'Likes tea. Drinks it black.'
    """
    return " ".join(text.split())


def tags_of(tags: list[str], most: int) -> list[str]:
    """Shorten tags, and keep each once."""
    return list(dict.fromkeys(tag for tag in (paragraph(tag)[:TAG_CHARS].strip() for tag in tags) if tag))[:most]
