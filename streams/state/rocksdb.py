"""A partition's state in RocksDB, for state larger than memory. It is a cache; the changelog is authoritative.

Keys: `h` and the entity for its head, `p` and the changelog key for any other part, `m` for the progress of the table.
So all heads are adjacent, and the time-outs of a partition are read without other data.

A fold is one write batch that includes its `applied`, written after the changelog has it and without fsync: a killed
process leaves the table as after some fold, and recovery continues from there. A table that is unreadable, has another
layout or is of another changelog (`streams.state.table`) is dropped and rebuilt. A full disk is different: the table
stays unchanged, and continues when there is space.

RocksDB keeps deleted data until it merges files, and keys also in its manifest and its own log. After an erasure,
`forget` merges the files at once and reopens the table. The table records the erasure for which this was done: if the
process was killed before, or another worker erased, recovery does it.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import RLock

import msgspec
import rocksdict
import structlog
from msgspec import Struct

from models.errors import RecoveryFailed, StoreUnavailable
from models.partition.log_fold import ERASED_PART, PARTITION_ENTITY
from streams.encryption.keyring import Sealer
from streams.state.changelog import is_sealed, key_of, opened_part, part_size_bytes, sealed_part
from streams.state.partition import Parts, TableProgress, Tail
from streams.state.rocksdb_entities import HEAD, RocksEntities, changelog_key, stored_key

log = structlog.get_logger(__name__)

LAYOUT = 1
"""Raised when the meaning of keys or values changes; a cache of another layout is dropped."""
_META = b"m"
_ERASURE = stored_key(key_of(PARTITION_ENTITY, ERASED_PART))
_MIB = 1024 * 1024
_MOST_RANGES = 8
"""Up to this many entities, only their key ranges are rewritten; for more, everything is."""
_MAX_FOLDERS = 16
_LOCKED = ("While lock file", "lock hold by current process")
"""RocksDB's messages for a folder that is already open, in another process or this one."""
_FULL = ("No space left", "File too large", "quota exceeded")
"""RocksDB's messages for a full disk."""


class _Meta(Struct, array_like=True):
    layout: int
    progress: TableProgress
    size_bytes: int
    heads: int
    forgotten: bytes = b""
    """The last erasure (`ERASED_PART`) whose bytes were removed; empty for none."""


def open_table(folder: Path, *, cache_bytes: int, write_buffer_bytes: int, sealer: Sealer | None = None) -> RocksTable:
    """Open a partition's table, or an empty one if there is no usable table.

    If another process (suspended or about to end) has locked the folder, the table is rebuilt in `<folder>.1` and so
    on.

    Raises:
        RecoveryFailed: The folder cannot be used.
        StoreUnavailable: The disk is full; the table stays unchanged.
    """
    options = _options(cache_bytes, write_buffer_bytes)
    for number in range(_MAX_FOLDERS):
        place = folder if number == 0 else folder.with_name(f"{folder.name}.{number}")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                return _opened(place, options, sealer)
            except _Unusable as error:
                log.warning("state_cache_dropped", folder=str(place), reason=str(error))
                shutil.rmtree(place)
                return _opened(place, options, sealer)
        except _FolderLocked:
            log.warning("state_folder_held", folder=str(place))
        except (OSError, _Unusable) as error:
            raise RecoveryFailed(
                f"state folder {place} cannot be created: {error}. Set TURNTIDE_DATA_DIR to a folder that this user "
                "may write"
            ) from error
    raise RecoveryFailed(
        f"state folder {folder} and {_MAX_FOLDERS - 1} beside it are locked by other processes: "
        "end workers that are not needed, or give this one its own TURNTIDE_DATA_DIR"
    )


class _FolderLocked(Exception):  # noqa: N818 - it says what is so
    """Another process has the folder open."""


class _Unusable(Exception):  # noqa: N818 - it says what is so
    """The folder has no table of this program."""


def _opened(place: Path, options: rocksdict.Options, sealer: Sealer | None) -> RocksTable:
    try:
        db = rocksdict.Rdict(str(place), options)
    except Exception as error:
        # rocksdict has no exceptions of its own: what went wrong stands in RocksDB's words alone.
        if any(words in str(error) for words in _LOCKED):
            raise _FolderLocked from error
        if _is_full(error):
            raise _disk_full(place, error) from error
        raise _Unusable(str(error)) from error
    try:
        return RocksTable(db, place, _meta_of(db), options, sealer)
    except Exception as error:
        db.close()
        raise _Unusable(str(error)) from error


def _is_full(error: Exception) -> bool:
    return any(words in str(error) for words in _FULL)


def _disk_full(place: Path, error: Exception) -> StoreUnavailable:
    return StoreUnavailable(
        f"state folder {place} cannot be written, the disk is full ({error}): make room and start the worker again, it "
        "goes on from what the changelog has"
    )


def _meta_of(db: rocksdict.Rdict) -> _Meta:
    stored = db.get(_META)
    if stored is None:
        return _Meta(LAYOUT, TableProgress(), 0, 0)
    meta = msgspec.msgpack.decode(stored, type=_Meta)
    if meta.layout != LAYOUT:
        raise _Unusable(f"layout {meta.layout}, this release has {LAYOUT}")
    return meta


def _options(cache_bytes: int, write_buffer_bytes: int) -> rocksdict.Options:
    """Options with small buffers, since each partition has its own table (hazards 14)."""
    blocks = rocksdict.BlockBasedOptions()
    blocks.set_block_cache(rocksdict.Cache(cache_bytes))
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
    blocks.set_bloom_filter(10, False)
    blocks.set_block_size(8 * 1024)
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(blocks)
    options.set_compression_type(rocksdict.DBCompressionType.lz4())
    options.set_write_buffer_size(write_buffer_bytes)
    options.set_max_write_buffer_number(2)
    options.set_max_background_jobs(2)
    options.set_max_open_files(128)
    options.set_keep_log_file_num(2)
    options.set_max_total_wal_size(64 * _MIB)
    return options


class RocksTable:
    """See `PartitionTable`. Each write batch also updates the numbers of entities and bytes.

    With a sealer, values are encrypted in the files.
    """

    def __init__(
        self, db: rocksdict.Rdict, folder: Path, meta: _Meta, options: rocksdict.Options, sealer: Sealer | None = None
    ) -> None:
        self.folder = folder
        self._db = db
        self._options = options
        self._sealer = sealer
        self._forgotten = meta.forgotten
        self._rewriting = RLock()
        self.progress = meta.progress
        self.size_bytes = meta.size_bytes
        self.heads = meta.heads

    @property
    def entities(self) -> Mapping[str, Parts]:
        """See `PartitionTable`."""
        return RocksEntities(self)

    def apply(
        self, parts: Mapping[bytes, bytes | None], *, offset: int, applied: int, tail: Tail | None, now_ms: int
    ) -> None:
        """See `PartitionTable`."""
        batch = rocksdict.WriteBatch(raw_mode=True)
        keys = [stored_key(key) for key in parts]
        with self._guarded():
            old_values: list[bytes | None] = self._db.get(keys) or []  # type: ignore[arg-type]  # its list is invariant
        size, heads = self.size_bytes, self.heads
        kept: Iterable[bytes | None] = parts.values()
        if self._sealer is not None:
            kept = [value and sealed_part(self._sealer, key, value) for key, value in parts.items()]
        for key, value, old in zip(keys, kept, old_values, strict=True):
            size += part_size_bytes(value or b"") - part_size_bytes(old or b"")
            if key.startswith(b"h"):
                heads += (value is not None) - (old is not None)
            if value is not None:
                batch.put(key, value)
            elif old is not None:
                batch.delete(key)
        progress = TableProgress(applied, offset, tail, now_ms)
        batch.put(_META, msgspec.msgpack.encode(_Meta(LAYOUT, progress, size, heads, self._forgotten)))
        with self._guarded():
            self._db.write(batch)
        self.progress, self.size_bytes, self.heads = progress, size, heads

    def forget(self, entities: Collection[str] | None = None) -> None:
        """See `PartitionTable`. Other threads may run during it, but nothing writes to the table."""
        erasure = self.get(_ERASURE) or b""
        if entities is None and erasure == self._forgotten:
            return
        with self._rewriting, self._guarded():
            for first, last in _ranges(entities):
                self._db.compact_range(first, last, _all_levels())
            meta = _Meta(LAYOUT, self.progress, self.size_bytes, self.heads, erasure)
            self._db[_META] = msgspec.msgpack.encode(meta)
            self._forgotten = erasure
            self._begin_anew()

    def _begin_anew(self) -> None:
        """Reopen the table, so that RocksDB rewrites its manifest and log, which contain deleted keys."""
        self._db.close()
        try:
            self._db = rocksdict.Rdict(str(self.folder), self._options)
        except Exception as error:
            if _is_full(error):
                raise _disk_full(self.folder, error) from error
            raise RecoveryFailed(
                f"state folder {self.folder} cannot be reopened after an erasure ({error}): restart the worker"
            ) from error
        for log_file in self.folder.glob("LOG.old*"):
            log_file.unlink()

    def get(self, key: bytes) -> bytes | None:
        """One stored value."""
        with self._guarded():
            value: bytes | None = self._db.get(key)
        return value and self._plain(key, value)

    def between(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Entries whose key begins with the prefix, in order; the prefix must not end with byte 255."""
        options = rocksdict.ReadOptions()
        options.set_iterate_upper_bound(prefix[:-1] + bytes([prefix[-1] + 1]))
        with self._guarded():
            place = self._db.iter(options)
            place.seek(prefix)
            while place.valid():
                yield (key := place.key()), self._plain(key, place.value())
                place.next()
            # rocksdict's own iteration ends at a damaged block as if nothing followed.
            place.status()

    def _plain(self, key: bytes, kept: bytes) -> bytes:
        """Decrypt a stored value.

        Raises:
            RecoveryFailed: Its key was erased after the table was opened.
        """
        if not is_sealed(kept):
            return kept  # most have no encryption: no key is made for them
        if (value := opened_part(changelog_key(key), kept)) is None:
            raise RecoveryFailed("the key of a part of state was erased: restart the worker")
        return value

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Drop a table that turns out to be damaged, so that the next start rebuilds it; report a full disk."""
        try:
            yield
        except (rocksdict.DbClosedError, StoreUnavailable):
            raise
        except Exception as error:
            if _is_full(error):
                raise _disk_full(self.folder, error) from error
            if "orruption" not in str(error):
                raise
            self.drop()
            raise RecoveryFailed(
                f"state folder {self.folder} was damaged and is dropped ({error}): restart the worker, which rebuilds "
                "its state from the changelog"
            ) from error

    def close(self) -> None:
        """See `PartitionTable`. Writes that failed on a full disk are in the changelog."""
        with self._rewriting:
            try:
                self._db.close()
            except Exception as error:  # noqa: BLE001 - rocksdict has no exceptions of its own
                log.warning("state_not_closed", folder=str(self.folder), reason=str(error))

    def drop(self) -> None:
        """Close and delete the table."""
        self.close()
        shutil.rmtree(self.folder)


def _all_levels() -> rocksdict.CompactOptions:
    """Compaction of all levels: files merged during a read may have deleted data in the lowest level."""
    options = rocksdict.CompactOptions()
    options.set_bottommost_level_compaction(rocksdict.BottommostLevelCompaction.force())
    return options


def _ranges(entities: Collection[str] | None) -> Iterator[tuple[bytes | None, bytes | None]]:
    """First and last keys of the ranges to rewrite."""
    if entities is None or len(entities) > _MOST_RANGES:
        yield None, None
        return
    for entity in entities:
        head, parts = stored_key(key_of(entity, HEAD)), b"p" + key_of(entity, "")
        yield head, head
        yield parts, parts[:-1] + bytes([parts[-1] + 1])


def drop_outdated(parent: Path, max_age: timedelta, *, now_s: float) -> None:
    """Delete tables in a folder that no process has locked and that have not been written to for `max_age`.

    They belong to partitions that moved to another worker, or were created beside a locked table. Recovery would not
    use them, since the changelog may no longer have later deletions (`streams.state.table`).
    """
    for place in parent.iterdir() if parent.is_dir() else ():
        if now_s - place.stat().st_mtime > max_age.total_seconds() and not _held(place):
            log.info("state_cache_dropped", folder=str(place), reason="outdated")
            shutil.rmtree(place, ignore_errors=True)


def _held(place: Path) -> bool:
    """Whether this or another process has the table open; a damaged one counts as not open."""
    try:
        rocksdict.Rdict(str(place), rocksdict.Options(raw_mode=True)).close()
    except Exception as error:  # noqa: BLE001 - rocksdict has no exceptions of its own
        return "lock" in str(error).casefold()
    return False
