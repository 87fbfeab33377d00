"""The port of one partition's state: what the fold sees, and what it takes to write and recover it."""

from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

from msgspec import Struct

Parts = Mapping[str, bytes]


class Tail(NamedTuple):
    """The last changelog record applied: its position and the CRC-32 of its key and value."""

    position: int
    crc: int


class TableProgress(Struct, frozen=True, array_like=True):
    """How far a table is.

    Attributes:
        applied: Next changelog offset to apply; what lies below is in the table.
        offset: Source offset up to which the table is folded; -1 before any.
        tail: Tells whether the changelog is still the one that the table was read from.
        current_ms: Wall clock at which nothing lay beyond `applied`, ms since 1970.
    """

    applied: int = 0
    offset: int = -1
    tail: Tail | None = None
    current_ms: int = 0


class PartitionTable(Protocol):
    """Entities of one partition. An entity is a few named parts of bytes; without parts it is gone.

    A session always has a part `head`. Stores may keep heads apart, so that iterating over `entities` need not load
    anything else: of an entity without a head they may list nothing, except of the partition's own (`""`).
    """

    @property
    def entities(self) -> Mapping[str, Parts]:
        """Live view: entity → part → bytes. Its length is counted along, never by looking."""
        ...

    @property
    def progress(self) -> TableProgress:
        """How far it is."""
        ...

    @property
    def size_bytes(self) -> int:
        """Size of all parts."""
        ...

    def apply(
        self, parts: Mapping[bytes, bytes | None], *, offset: int, applied: int, tail: Tail | None, now_ms: int
    ) -> None:
        """Take what stands in the changelog below `applied`: all of it or, after a crash on the way, nothing.

        Args:
            parts: Changelog key → bytes, None to delete.
            offset: Source offset that they bring the table to.
            applied: Next changelog offset to apply.
            tail: The last of the changelog's records below it.
            now_ms: Wall clock of this.
        """
        ...

    def forget(self, entities: Collection[str] | None = None) -> None:
        """Give up the bytes of what was deleted or replaced, in files too; what is stored stays.

        Args:
            entities: Of these, which an erasure has just changed. None: of all, if an erasure was applied
                (`models.partition.log_fold.ERASED_PART`) and its bytes were not given up yet.

        Raises:
            RecoveryFailed: The files cannot be opened again; the next start brings it to an end.
        """
        ...

    def close(self) -> None:
        """Let go of files and memory; the table is not used afterwards."""
        ...

    def drop(self) -> None:
        """Close, and delete what is kept."""
        ...
