"""Memories and pending facts of a project as its state keeps them, on shards.

| part of a shard | content | shard |
|---|---|---|
| `m:<id>` | a memory with its place and who refers to it | of the id's suffix |
| `s:<digest>` | memories of a subject, oldest first | of the subject |
| `p:<id>` | a pending fact: not sure enough yet to be a memory (project memory, Fact Lifecycle) | of the id's suffix |

The same content has the same suffix, so what is said again finds what is known. The root has the confidences of pending
facts in `BLOCKS` parts `y<n>`, by which the least sure is found without reading any shard.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import ClassVar, Final, Generic, TypeVar
from zlib import crc32

from msgspec import Struct

from models.events.project_items import PendingFact, ProjectMemory, Relationship
from models.project.store import LAYOUT, SHARDS, Slots, Store
from models.state.entity import digest_of, encode, write_part
from models.state.parts import Parts

MEMORY: Final = "memory"
PENDING: Final = "pending"
"""Kinds of the items."""
BLOCKS: Final = 16
_Kept = TypeVar("_Kept")
_AT_HAND = 1_000
"""Decoded memories that are kept for another look within one write."""


class StoredMemory(Struct, frozen=True, array_like=True):
    """A memory, and what only the state knows of it."""

    memory: ProjectMemory
    slot: int
    """Its place among the items of its kind."""
    incoming: tuple[str, ...] = ()
    """Memories with a relationship to this one, in the order in which they came."""
    ends: datetime | None = None
    """Where it ends by itself; something that superseded it may have closed it before."""
    waiting: tuple[Relationship, ...] = ()
    """Imported relationships to memories that are not here yet."""


class KeptFact(Struct, frozen=True, array_like=True):
    """A pending fact in its place."""

    fact: PendingFact
    slot: int


class MemoryCounts(Struct, array_like=True):
    """Counts of memories, in the head."""

    count: int = 0
    archived: int = 0
    created: int = 0
    """Of all time."""


class _OnShards(Generic[_Kept]):
    """Items of one kind, each on the shard of its id's suffix."""

    prefix: ClassVar[str]
    """Of the names of its parts."""
    form: type[_Kept]

    def __init__(self, store: Store, slots: Slots) -> None:
        self._store = store
        self._slots = slots

    def get(self, item_id: str) -> _Kept | None:
        """An item, None if it is not there."""
        return LAYOUT.part(self._shard_of(item_id), self.prefix + item_id, self.form)

    def alike(self, suffix: str) -> list[_Kept]:
        """Items whose id ends so: of one type and content, but for chance."""
        there = self.shard_ids(shard_of(suffix))
        found = (self.get(item_id) for item_id in there if item_id.endswith(f"-{suffix}"))
        return [kept for kept in found if kept is not None]

    def shard_ids(self, shard: int) -> list[str]:
        """Ids of the items on a shard, sorted: the oldest first."""
        return sorted(name.removeprefix(self.prefix) for name in self._store.shard(shard).names(self.prefix))

    def _write(self, item_id: str, kept: _Kept) -> None:
        self._store.put(self._shard_of(item_id), self.prefix + item_id, encode(kept))

    def _delete(self, item_id: str) -> None:
        self._shard_of(item_id).drop(self.prefix + item_id)

    def _shard_of(self, item_id: str) -> Parts:
        return self._store.shard(shard_of(suffix_of(item_id)))


class ShardedMemories(_OnShards[StoredMemory]):
    """Memories by id, by content, by subject and by shard, and their counts; nothing else is read.

    Attributes:
        dropped: Memories that went since the state was loaded or `dropped.clear()`, by id.
    """

    prefix, form = "m:", StoredMemory

    def __init__(self, store: Store, slots: Slots, counts: MemoryCounts) -> None:
        super().__init__(store, slots)
        self._counts = counts
        self._at_hand: dict[str, StoredMemory] = {}
        self.dropped: dict[str, ProjectMemory] = {}

    @property
    def count(self) -> int:
        """Kept memories, archived ones among them."""
        return self._counts.count

    def get(self, item_id: str) -> StoredMemory | None:
        """A memory, None if it is not there; decoded once."""
        kept = self._at_hand.get(item_id)
        if kept is None and (kept := super().get(item_id)) is not None:
            self._remember(kept)
        return kept

    def put(self, kept: StoredMemory) -> None:
        """Keep a memory, new or as it is now."""
        memory_id = kept.memory.id
        before = self.get(memory_id)
        counts = self._counts
        counts.count += before is None
        counts.created += before is None
        counts.archived += kept.memory.archived - (before is not None and before.memory.archived)
        self._remember(kept)
        self._write(memory_id, kept)

    def drop(self, memory_id: str) -> None:
        """Let go of a memory; its place is free."""
        known = self.get(memory_id)
        if known is None:
            return
        self._counts.count -= 1
        self._counts.archived -= known.memory.archived
        self._at_hand.pop(memory_id, None)
        self.dropped[memory_id] = known.memory
        self._delete(memory_id)
        self._slots.give(MEMORY, known.slot)

    def free_slot(self) -> int:
        """A place for a new one."""
        return self._slots.take(MEMORY)

    def subject(self, subject: str) -> list[str]:
        """Ids of a subject's memories, oldest first."""
        return LAYOUT.part(self._store.shard(shard_of(subject)), f"s:{digest_of(subject)}", list[str]) or []

    def set_subject(self, subject: str, ids: list[str]) -> None:
        """Note a subject's memories."""
        name, shard = f"s:{digest_of(subject)}", self._store.shard(shard_of(subject))
        if ids:
            self._store.put(shard, name, encode(ids))
        else:
            shard.drop(name)

    def _remember(self, kept: StoredMemory) -> None:
        if len(self._at_hand) >= _AT_HAND:
            self._at_hand.clear()
        self._at_hand[kept.memory.id] = kept


class PendingFactStore(_OnShards[KeptFact]):
    """Pending facts by id and by content."""

    prefix, form = "p:", KeptFact

    def put(self, fact: PendingFact) -> KeptFact:
        """Keep one, new or as it is now."""
        known = self.get(fact.id)
        kept = KeptFact(fact, self._slots.take(PENDING) if known is None else known.slot)
        self._write(fact.id, kept)
        self._note(fact.id, {fact.id: fact.confidence})
        return kept

    def drop(self, pending_id: str) -> KeptFact | None:
        """Let go of one; gives what was there."""
        known = self.get(pending_id)
        if known is None:
            return None
        self._delete(pending_id)
        self._note(pending_id)
        self._slots.give(PENDING, known.slot)
        return known

    def all(self) -> Iterator[KeptFact]:
        """All pending facts that are there when it is their turn, the oldest first."""
        ids = sorted(pending_id for pending_id, _ in self._confidences())
        return (kept for pending_id in ids if (kept := self.get(pending_id)) is not None)

    def weakest(self) -> str:
        """The least sure one, of equals the oldest; there must be one."""
        return min((sure, pending_id) for pending_id, sure in self._confidences())[1]

    def _confidences(self) -> Iterator[tuple[str, float]]:
        for number in range(BLOCKS):
            yield from self._block(f"y{number}").items()

    def _note(self, pending_id: str, confidence: Mapping[str, float] | None = None) -> None:
        """Note the confidence of a fact in its block; none: the fact is gone."""
        name = f"y{shard_of(suffix_of(pending_id)) % BLOCKS}"
        others = {each: sure for each, sure in self._block(name).items() if each != pending_id}
        write_part(self._store.root, name, dict(sorted((others | dict(confidence or {})).items())))

    def _block(self, name: str) -> dict[str, float]:
        return LAYOUT.part(self._store.root, name, dict[str, float]) or {}


def suffix_of(item_id: str) -> str:
    """Part of an id that comes from its content.

    >>> suffix_of("mf0k3x2a-9c1d22ab")
    '9c1d22ab'
    """
    return item_id.rpartition("-")[2]


def shard_of(name: str) -> int:
    """The shard of what is so named: of an id its suffix, so that the same content has the same shard."""
    return crc32(name.encode()) % SHARDS
