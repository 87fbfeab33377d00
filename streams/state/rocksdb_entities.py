"""Entities of a partition's state in RocksDB, as a fold sees them: by their heads, read when they are asked for."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from typing import TYPE_CHECKING

from streams.state.changelog import SEPARATOR, key_of, name_of
from streams.state.partition import Parts

if TYPE_CHECKING:
    from streams.state.rocksdb import RocksTable

HEAD = "head"
_HEAD_SUFFIX = f"{SEPARATOR}{HEAD}".encode()


def stored_key(key: bytes) -> bytes:
    """Where RocksDB has what the changelog has under this key."""
    return b"h" + key[: -len(_HEAD_SUFFIX)] if key.endswith(_HEAD_SUFFIX) else b"p" + key


def changelog_key(stored: bytes) -> bytes:
    """The changelog's key again."""
    return stored[1:] + _HEAD_SUFFIX if stored.startswith(b"h") else stored[1:]


class RocksEntities(Mapping[str, Parts]):
    """See `PartitionTable.entities`: entities by their heads, and the partition's own, which has none."""

    def __init__(self, table: RocksTable) -> None:
        self._table = table

    def __getitem__(self, entity: str) -> Parts:
        head = self._table.get(stored_key(key_of(entity, HEAD)))
        parts = {} if head is None else {HEAD: head}
        for key, value in self._table.between(b"p" + key_of(entity, "")):
            parts[name_of(key[1:])[1]] = value
        if not parts:
            raise KeyError(entity)
        return parts

    def __iter__(self) -> Iterator[str]:
        return (entity for entity, _ in self.heads())

    def __len__(self) -> int:
        return self._table.heads + bool(self.get(""))

    def items(self) -> ItemsView[str, Parts]:
        """Heads are read along the way, other parts when they are asked for."""
        return _EntityItems(self)

    def heads(self) -> Iterator[tuple[str, Parts]]:
        """Entity and parts, of which no more than the head is loaded."""
        own = self.get("")
        if own:
            yield "", own
        for key, head in self._table.between(b"h"):
            entity = name_of(key[1:] + SEPARATOR.encode())[0]
            yield entity, _LazyParts(self, entity, head)


class _EntityItems(ItemsView[str, Parts]):
    _mapping: RocksEntities

    def __iter__(self) -> Iterator[tuple[str, Parts]]:
        return self._mapping.heads()


class _LazyParts(Mapping[str, bytes]):
    """An entity's parts as of when they are asked for; its head as of the iteration."""

    def __init__(self, entities: RocksEntities, entity: str, head: bytes) -> None:
        self._entities, self._entity, self._head = entities, entity, head

    def __getitem__(self, part: str) -> bytes:
        return self._head if part == HEAD else self._entities[self._entity][part]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entities[self._entity])

    def __len__(self) -> int:
        return len(self._entities[self._entity])
