"""Changes of a project's long-term memories while one event is folded: what `models.project.long_term` works on."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec
from msgspec import Struct

from models import events
from models.events.ids import sortable_id
from models.policy.project import LongTermPolicy, NarrativePolicy
from models.project.shards import ShardedMemories, StoredMemory, suffix_of
from models.state.entity import same_fields
from models.text.words import fold_text

_Item = TypeVar("_Item", events.ProjectMemory, events.ProjectEpisode)
_MILLISECOND = timedelta(milliseconds=1)
_BEFORE_WORD, _AFTER_WORD = "\"'`([{*", ".,;:!?\"'`)]}*"


class New(Struct, frozen=True, kw_only=True):
    """New memory that is to be kept. Fields as in `ProjectMemory`."""

    type: events.MemoryType
    content: str
    category: events.Category = ""
    tags: list[str] = []
    subject: str = ""
    importance: float | None = None
    """None: the type's default."""
    confidence: float = 1.0
    source: events.MemorySource
    valid_from: datetime
    valid_until: datetime | None = None


Emit = Callable[[StoredMemory, events.ItemCause, bool], None]
"""Hears of each memory that changed, or went (true), once per operation."""


class MemoryChanges:
    """Memories that are being changed; what changed is told at the end of an operation, each memory once.

    Args:
        memories: The project's.
        emit: Hears of what changed or went.
        key: The project's.
        policy: Gains, half-life and bounds.
        now: Broker time of the record: from then on it is known.
    """

    def __init__(self, memories: ShardedMemories, emit: Emit, key: str, policy: LongTermPolicy, now: datetime) -> None:
        self.memories = memories
        self.key = key
        self.policy = policy
        self.now = now
        self._emit = emit
        self._changed: dict[str, events.ItemCause] = {}

    def get(self, memory_id: str) -> StoredMemory | None:
        """A memory as it is now."""
        return self.memories.get(memory_id)

    def put(self, kept: StoredMemory, cause: events.ItemCause | None) -> StoredMemory:
        """Keep it; without a cause nobody needs to hear of it. Of several causes the first is told."""
        self.memories.put(kept)
        if cause is not None:
            self._changed.setdefault(kept.memory.id, cause)
        return kept

    def forget(self, kept: StoredMemory, cause: events.ItemCause) -> None:
        """Let go of it; told at once, as its slot may be taken next."""
        self.memories.drop(kept.memory.id)
        self._changed.pop(kept.memory.id, None)
        self._emit(kept, cause, True)

    def emit(self) -> None:
        """End the operation."""
        changed, self._changed = self._changed, {}
        for memory_id, cause in changed.items():
            kept = self.get(memory_id)
            if kept is not None:
                self._emit(kept, cause, False)

    def listed(self, name: str, kept: StoredMemory, most: int) -> None:
        """List a memory under a name, the latest last; beyond `most` the oldest is left out."""
        ids = [each for each in self.memories.subject(name) if each != kept.memory.id]
        self.memories.set_subject(name, [*ids, kept.memory.id][-most:] if most else [])

    def unlisted(self, name: str, memory_id: str) -> None:
        """Take it from a list."""
        ids = self.memories.subject(name)
        if memory_id in ids:
            self.memories.set_subject(name, [each for each in ids if each != memory_id])

    def free_id(self, at: datetime, memory_type: events.MemoryType, content: str, holder: str) -> str:
        """Id of a new memory; a millisecond later as long as another has it."""
        named = _named_by(self.key, memory_type, content, holder)
        while self.get(memory_id := sortable_id(at, *named)) is not None:
            at += _MILLISECOND
        return memory_id

    def suffix(self, memory_type: events.MemoryType, content: str, holder: str) -> str:
        """Suffix of ids of this type and content."""
        return suffix_of(sortable_id(self.now, *_named_by(self.key, memory_type, content, holder)))

    def revised(self, memory: events.ProjectMemory, **fields: object) -> events.ProjectMemory:
        """A memory of which something else is known from now on: what was known before goes into its history.

        What became known with the same record never stood, and leaves nothing.
        """
        now = max(self.now, memory.recorded_at)
        history = memory.history
        if memory.recorded_at < now:
            before = events.MemoryRevision(**same_fields(memory, events.MemoryRevision))
            most = self.policy.history
            history = [*history, before][-most:] if most else []
        return msgspec.structs.replace(memory, **fields, recorded_at=now, updated_at=now, history=history)


def _named_by(key: str, memory_type: events.MemoryType, content: str, holder: str) -> list[str]:
    return [key, memory_type.value, canonical(content), *([holder] if holder else [])]


def bounded_sources(sources: Sequence[events.MemorySource], most: int) -> list[events.MemorySource]:
    """The first and the latest, by the time they were said."""
    in_order = sorted(sources, key=lambda each: each.said_at)
    return in_order if len(in_order) <= most else [in_order[0], *in_order[len(in_order) - most + 1 :]]


def holder_of(memory_type: events.MemoryType, user_id: str) -> str:
    """Holder of a memory: the user for a preference, else the project (empty)."""
    return user_id if memory_type is events.MemoryType.PREFERENCE else ""


def holder(memory: events.ProjectMemory) -> str:
    """Holder of a kept memory (`holder_of`)."""
    return holder_of(memory.type, memory.sources[0].user_id if memory.sources else "")


def canonical(content: str) -> str:
    r"""Canonical form, equal for the same content: folded, single spaces, no marks around words. Symbols count.

    >>> canonical('Use "PostgreSQL" \n for orders!') == canonical("use postgresql for orders")
    True
    >>> canonical("Use C++.") == canonical("Use C#.")
    False
    """
    words = (word.lstrip(_BEFORE_WORD).rstrip(_AFTER_WORD) for word in fold_text(content).split())
    return " ".join(filter(None, words)) or content.strip()


def read_again(item: _Item, count: int, at: datetime) -> _Item:
    """A memory or an episode that readers retrieved so often, at last at a time."""
    last = max(item.last_accessed_at, at)
    return msgspec.structs.replace(item, access_count=item.access_count + count, last_accessed_at=last)


def decay_at(
    item: events.ProjectMemory | events.ProjectEpisode, at: datetime, policy: LongTermPolicy | NarrativePolicy
) -> float:
    """Decay factor at a time, `min(1, 0.5^(age / half-life) + min(boost * accesses, most))` (project memory).

    A negative age (a clock that went back) counts as none.

    >>> from datetime import UTC
    >>> from types import SimpleNamespace as Item
    >>> noon, policy = datetime(2026, 1, 1, 12, tzinfo=UTC), LongTermPolicy()
    >>> read = [Item(last_accessed_at=noon, access_count=count) for count in (0, 1, 5, 50)]
    >>> [round(decay_at(item, noon + 2 * policy.half_life, policy), 2) for item in read]
    [0.25, 0.35, 0.75, 0.75]
    >>> decay_at(read[2], noon, policy)
    1.0
    """
    age: float = max(at - item.last_accessed_at, timedelta()) / policy.half_life
    return min(1.0, float(0.5**age) + min(policy.access_boost * item.access_count, policy.access_boost_most))
