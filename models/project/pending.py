"""Pending facts of a project in its state: said, and not sure enough to be a memory (project memory, Fact Lifecycle).

Each lies on the shard of its content's suffix (`models.project.shards`), so that the same said again finds it. The
root has their confidences in `BLOCKS` parts `y<n>`, by which the least sure is found without reading any shard.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from models.events.project_items import PendingFact
from models.project.shards import shard_of, suffix_of
from models.project.store import Slots, Store, decoded
from models.state.entity import encode

BLOCKS: Final = 16
PENDING: Final = "pending"
"""Kind of the items."""
_PREFIX = "p:"


class KeptFact(Struct, frozen=True, array_like=True):
    """A pending fact in its place."""

    fact: PendingFact
    slot: int


_decode_fact = msgspec.msgpack.Decoder(KeptFact).decode
_decode_block = msgspec.msgpack.Decoder(dict[str, float]).decode


class PendingFactStore:
    """Pending facts by id and by content.

    Args:
        store: Where the shards are.
        slots: Where places come from.
    """

    def __init__(self, store: Store, slots: Slots) -> None:
        self._store = store
        self._slots = slots

    def get(self, pending_id: str) -> KeptFact | None:
        """One of them, None if it is not there."""
        data = self._store.shard(shard_of(suffix_of(pending_id))).get(_PREFIX + pending_id)
        return None if data is None else decoded(_PREFIX, data, _decode_fact)

    def alike(self, suffix: str) -> list[KeptFact]:
        """Those whose id ends so: of one type and content, but for chance."""
        names = self._store.shard(shard_of(suffix)).names(_PREFIX)
        ids = sorted(name[len(_PREFIX) :] for name in names if name.endswith(f"-{suffix}"))
        return [kept for pending_id in ids if (kept := self.get(pending_id)) is not None]

    def put(self, fact: PendingFact) -> KeptFact:
        """Keep one, new or as it is now."""
        known = self.get(fact.id)
        kept = KeptFact(fact, self._slots.take(PENDING) if known is None else known.slot)
        self._store.put(self._store.shard(shard_of(suffix_of(fact.id))), _PREFIX + fact.id, encode(kept))
        name = _block_of(fact.id)
        self._write(name, self._block(name) | {fact.id: fact.confidence})
        return kept

    def drop(self, pending_id: str) -> KeptFact | None:
        """Let go of one; gives what was there."""
        known = self.get(pending_id)
        if known is None:
            return None
        self._store.shard(shard_of(suffix_of(pending_id))).drop(_PREFIX + pending_id)
        name = _block_of(pending_id)
        block = self._block(name)
        block.pop(pending_id, None)
        self._write(name, block)
        self._slots.give(PENDING, known.slot)
        return known

    def ids(self) -> list[str]:
        """Of all, the oldest first."""
        return sorted(pending_id for pending_id, _ in self._confidences())

    def weakest(self) -> str | None:
        """The least sure one, of equals the oldest."""
        return min(((sure, pending_id) for pending_id, sure in self._confidences()), default=(0.0, None))[1]

    def _confidences(self) -> Iterator[tuple[str, float]]:
        for number in range(BLOCKS):
            yield from self._block(f"y{number}").items()

    def _block(self, name: str) -> dict[str, float]:
        data = self._store.root.get(name)
        return {} if data is None else decoded(name, data, _decode_block)

    def _write(self, name: str, block: dict[str, float]) -> None:
        if block:
            self._store.root.put(name, encode(dict(sorted(block.items()))))
        else:
            self._store.root.drop(name)


def _block_of(pending_id: str) -> str:
    return f"y{shard_of(suffix_of(pending_id)) % BLOCKS}"
