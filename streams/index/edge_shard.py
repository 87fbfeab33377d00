"""One collection of Qdrant Edge on disk, blocking: a shard and an info file that names its embedder.

Vectors are scanned within the filter, without a graph: every search is filtered by an indexed field, which leaves few
points, and a scan is exact. (Measured: the graph for 100,000 points took 148 s to build and made filtered search
slower.)
"""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast
from uuid import UUID

import msgspec
import numpy as np
import qdrant_edge as engine
import structlog

from models.errors import StoreUnavailable
from models.retrieval.lexical import SparseVector
from streams.index import points as rules
from streams.index.held_points import HeldPoints
from streams.index.qdrant import Fields, Payload
from streams.ports import Point, Query, SearchHit, Where

log = structlog.get_logger(__name__)

_INFO_FILE = "collection.json"
_SHARD_FOLDERS = ("shard", "shard-anew")
_REMEMBERED_KEYS = 131_072
"""Cached keys of ranked points, about 35 MB. Reading a payload costs more than finding its point (100 payloads
0.3 ms, the search 0.1 to 0.3), and a point's key never changes."""
HELD_PAGE = 128
"""Points loaded into the cache between two other calls: 2 ms."""
_MIB = 1024 * 1024
SPARE_BYTES = 64 * _MIB
"""Free space below which writes are refused: more than a batch and the engine's own merges need."""
_INDEXES: Mapping[str, engine.PayloadSchemaType | engine.IntegerIndexParams] = {
    **dict.fromkeys(rules.KEYWORD_FIELDS, engine.PayloadSchemaType.Keyword),
    **dict.fromkeys(rules.INTEGER_FIELDS, engine.IntegerIndexParams(lookup=False, range=True)),
}
"""A field's index is created with the first point that has it: each costs 1 to 3 µs and 100 to 150 bytes of memory a
point, and its own files. Integers have only a range index, which also finds one value: a lookup index doubles the cost.
"""
_TERMS = rules.Terms(
    engine.FieldCondition,
    engine.Filter,
    engine.RangeFloat,
    engine.RangeDateTime,
    engine.MatchValue,
    engine.MatchAny,
    engine.IsNullCondition,
    lambda ids: engine.HasIdCondition(set(ids)),
    engine.SparseVector,
)


class EdgeInfo(rules.CollectionInfo, frozen=True, kw_only=True):
    """The info file beside the shard. A shard in another folder than `shard` is left over from a rewrite."""

    shard: str = _SHARD_FOLDERS[0]

    def moved(self) -> EdgeInfo:
        """The same with the shard in the other folder."""
        return msgspec.structs.replace(self, shard=next(name for name in _SHARD_FOLDERS if name != self.shard))


def _config(info: rules.CollectionInfo) -> engine.EdgeConfig:
    words = {rules.LEXICAL: engine.EdgeSparseVectorParams(modifier=engine.Modifier.Idf)}
    return engine.EdgeConfig(
        vectors=engine.EdgeVectorParams(size=info.dim, distance=engine.Distance.Cosine),
        sparse_vectors=words if info.lexical else None,
        hnsw_config=engine.HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=0),
        optimizers=engine.EdgeOptimizersConfig(indexing_threshold=0, default_segment_number=1),
        wal_enabled=False,  # nothing counts as written before `flush`: who writes begins again behind the last one
    )


def _filter(where: Where) -> engine.Filter | None:
    """The engine's filter; None without conditions, so that the engine counts without reading points."""
    return engine.Filter(must=_TERMS.conditions(where)) if where else None


def _write_durably(file: Path, content: bytes) -> None:
    """Write a file atomically and durably, also in case of a power cut."""
    draft = file.with_suffix(".new")
    with draft.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    draft.rename(file)
    _sync(file.parent)


def _sync(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on disk (`fsync`)."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def read_info(folder: Path) -> EdgeInfo | None:
    """Info of the collection in `folder`; None if there is no collection."""
    try:
        return msgspec.json.decode((folder / _INFO_FILE).read_bytes(), type=EdgeInfo)
    except FileNotFoundError:
        return None


def _new_shard(folder: Path, info: EdgeInfo, indexed: Iterable[str] = ()) -> engine.EdgeShard:
    """Create an empty shard, replacing an unused one, with indexes on payload fields."""
    require_room(folder)
    shutil.rmtree(folder / info.shard, ignore_errors=True)
    (folder / info.shard).mkdir(parents=True)
    shard = engine.EdgeShard.create(str(folder / info.shard), _config(info))
    for field in indexed:
        shard.update(engine.UpdateOperation.create_field_index(field, _INDEXES[field]))
    shard.flush()
    return shard


def require_room(folder: Path) -> None:
    """Refuse to write if the disk is almost full.

    The engine maps sparse files into memory: a page for which the disk has no space ends the process by a signal.

    Raises:
        StoreUnavailable: Less than `SPARE_BYTES` are free.
    """
    place = next(each for each in (folder, *folder.parents) if each.exists())
    free_bytes = shutil.disk_usage(place).free
    if free_bytes < SPARE_BYTES:
        raise StoreUnavailable(
            f"vector store {folder}: the disk has {free_bytes // _MIB} MiB free, writing needs {SPARE_BYTES // _MIB}. "
            "Free disk space; nothing was written"
        )


def give_back(folder: Path) -> None:
    """Release mapped pages of a folder's files from resident memory; the page cache serves the next read.

    Qdrant reads whole files when it opens a collection, including holes: 39 MB of resident memory for one with a
    hundred points, and there are eight. Do not call while another thread unmaps files of this folder. Linux only;
    elsewhere a no-op.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, flags, *_, name = line.split(maxsplit=5)
        if flags.endswith("s") and Path(name).is_relative_to(folder):  # shared: what is not yet on the disk stays
            start, end = (int(address, 16) for address in place.split("-"))
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)


def _remove_other(folder: Path, info: EdgeInfo) -> None:
    """Remove the shard that the info file does not name."""
    with suppress(FileNotFoundError):
        shutil.rmtree(folder / info.moved().shard)
        _sync(folder)


class EdgeCollection:
    """An open shard. Not thread-safe.

    It is rewritten (`begin_anew`, `copy_page`, `finish_anew`) because the engine keeps deleted and replaced data in
    its segments, and in the log that earlier releases wrote: measured, neither a flush nor the optimizer nor opening
    the shard again removes those bytes.
    """

    def __init__(self, folder: Path, shard: engine.EdgeShard, info: EdgeInfo) -> None:
        self._folder = folder
        self._shard = shard
        self._anew: engine.EdgeShard | None = None
        self._keys: dict[int, str] = {}
        self._held = HeldPoints(info.dim)
        self._indexed = set(shard.info().payload_schema)
        self.info = info

    @classmethod
    def load(cls, folder: Path, info: EdgeInfo) -> EdgeCollection:
        """Open the collection in `folder` and replay the log that shards of releases up to 0.2.0 have."""
        _remove_other(folder, info)
        require_room(folder)  # a log is replayed into the files
        shard = engine.EdgeShard.load(str(folder / info.shard))
        shard.optimize()  # gives the space of deleted points back; 0.6 s after deleting 20,000 of 40,000
        give_back(folder.resolve())
        return cls(folder, shard, info)

    @classmethod
    def create(cls, folder: Path, info: EdgeInfo) -> EdgeCollection:
        """Create an empty collection. Its info file is written last: without it there is no collection."""
        shutil.rmtree(folder, ignore_errors=True)
        shard = _new_shard(folder, info)
        _write_durably(folder / _INFO_FILE, msgspec.json.encode(info))
        return cls(folder, shard, info)

    def upsert(self, points: Sequence[Point]) -> None:
        """Write validated points into memory; durable after `flush`."""
        batch = [
            engine.Point(rules.point_id(point.key), _TERMS.vectors(point), rules.stored_payload(point))
            for point in points
        ]
        for field in _INDEXES.keys() - self._indexed:
            if any(field in point.payload for point in points):
                self._update(engine.UpdateOperation.create_field_index(field, _INDEXES[field]))
                self._indexed.add(field)
        self._update(engine.UpdateOperation.upsert_points(batch))
        self._held.written(points)

    @property
    def is_reading(self) -> bool:
        """Whether a user's points are being loaded into the cache (`hold_page`)."""
        return self._held.reading() is not None

    def hold_page(self) -> None:
        """Load the next page of a user's points into the cache; if that fails, the engine continues to answer."""
        if (reading := self._held.reading()) is None:
            return
        user, where = reading
        try:
            records, following = self._page(user.after, HELD_PAGE, vectors=[""], within=_filter(where))
            page = [(record.payload or {}, np.array(record.vector, np.float32)) for record in records]
            self._held.read(user, page, following)
        except Exception as error:  # nobody waits for it who could be told
            self._held.deleted(where)
            log.exception("points_not_held", collection=self._folder.name, error=type(error).__name__)

    def ranked(self, query: Query, where: Where, top_k: int, fields: Fields) -> list[SearchHit]:
        """The nearest points, or those with the highest BM25, best first."""
        if not isinstance(query, SparseVector) and (held := self._held.asked(where, self.count)):
            return held.nearest(query, where, top_k, fields)
        within, params, using = _filter(where), None, None
        if isinstance(query, SparseVector):
            params, using = engine.SearchParams(idf=engine.IdfParams(corpus=within)), rules.LEXICAL
        nearest = engine.Query.Nearest(_TERMS.vector(query), using=using)
        # No payload at all where the key is enough.
        payload = False if fields is not None and not fields else rules.selected(fields)
        found = self._shard.search(
            engine.SearchRequest(nearest, top_k, filter=within, params=params, with_payload=payload)
        )
        if payload:
            return [rules.hit(point.payload or {}, point.score) for point in found]
        ids = [cast("UUID", point.id) for point in found]
        try:
            keys = [self._keys[each.int] for each in ids]
        except KeyError:
            keys = self._found_keys(ids)
        return [SearchHit(key, point.score, {}) for key, point in zip(keys, found, strict=True)]

    def _found_keys(self, ids: Sequence[UUID]) -> list[str]:
        """Keys of points, read if they are not cached."""
        unknown = [each for each in ids if each.int not in self._keys]
        if len(self._keys) + len(unknown) > _REMEMBERED_KEYS:
            self._keys.clear()
            unknown = list(ids)
        read = self._shard.retrieve([*unknown], with_payload=[rules.KEY_FIELD], with_vector=False)
        self._keys |= {cast("UUID", record.id).int: str((record.payload or {})[rules.KEY_FIELD]) for record in read}
        return [self._keys[each.int] for each in ids]

    def scrolled(self, where: Where, limit: int, by: str) -> list[Payload]:
        """Payloads of the matching points; with `by`, the highest value of that field first."""
        if by in _INDEXES.keys() - self._indexed:
            return []  # no point has it
        within, order = _filter(where), engine.OrderBy(by, engine.Direction.Desc) if by else None
        records, _ = self._shard.scroll(
            engine.ScrollRequest(limit=limit, filter=within, with_payload=True, order_by=order)
        )
        return [record.payload or {} for record in records]

    def count(self, where: Where) -> int:
        """Count exactly."""
        return int(self._shard.count(engine.CountRequest(exact=True, filter=_filter(where))))

    def rename(self, keys: Mapping[str, str]) -> None:
        """Write points under new keys; durable after `flush`, when the old ones may be deleted."""
        self._held.deleted({})
        old = {rules.point_id(key): rules.point_id(new) for key, new in keys.items()}
        read = self._shard.retrieve([*old], with_payload=True, with_vector=True)
        batch = [
            engine.Point(old[str(each.id)], each.vector or {}, rules.renamed(each.payload or {}, keys)) for each in read
        ]
        if batch:
            self._update(engine.UpdateOperation.upsert_points(batch))

    def delete_keys(self, keys: Iterable[str]) -> None:
        """Delete points by their keys; durable after `flush`."""
        self._held.deleted({})
        self._update(engine.UpdateOperation.delete_points([rules.point_id(key) for key in keys]))

    def delete(self, where: Where, below: tuple[str, int] | None) -> None:
        """Delete matching points; durable after `flush`."""
        self._held.deleted(where)
        self._update(
            engine.UpdateOperation.delete_points_by_filter(engine.Filter(must=_TERMS.conditions(where, below)))
        )

    def _update(self, operation: engine.UpdateOperation) -> None:
        """Apply an operation, also to a shard under construction, into which the points may already be copied."""
        require_room(self._folder)
        for shard in filter(None, (self._shard, self._anew)):
            shard.update(operation)

    def flush(self) -> None:
        """Make everything written so far durable."""
        self._shard.flush()

    def page(self, after: str, limit: int) -> tuple[list[Payload], str]:
        """A page of payloads in order of ids, and the start of the next page, empty at the end."""
        records, following = self._page(after, limit, vectors=False)
        return [record.payload or {} for record in records], following

    def _page(
        self, after: str, limit: int, *, vectors: bool | list[str], within: engine.Filter | None = None
    ) -> tuple[list[engine.Record], str]:
        request = engine.ScrollRequest(
            offset=after or None, limit=limit, filter=within, with_payload=True, with_vector=vectors
        )
        records, following = self._shard.scroll(request)
        return records, "" if following is None else str(following)

    # --- writing anew

    def begin_anew(self) -> None:
        """Start a rewrite: create an empty shard in the other folder; from now on writes go to both."""
        self.abandon_anew()
        self._anew = _new_shard(self._folder, self.info.moved(), self._indexed)

    def copy_page(self, after: str, limit: int) -> str:
        """Copy a page of points that starts at `after`; returns the start of the next page, empty at the end."""
        require_room(self._folder)
        records, following = self._page(after, limit, vectors=True)
        batch = [engine.Point(record.id, record.vector or {}, record.payload) for record in records]
        if batch and self._anew is not None:
            self._anew.update(engine.UpdateOperation.upsert_points(batch))
        return following

    def finish_anew(self) -> None:
        """Switch to the new shard, and remove the old one.

        If the process dies here: the old shard is in use until the info file is replaced, which is atomic. Afterwards
        the new one is in use, and the next process that opens the collection removes the old one.
        """
        if self._anew is None:
            return
        moved = self.info.moved()
        self._anew.flush()
        for path in (self._folder, *(self._folder / moved.shard).rglob("*"), self._folder / moved.shard):
            _sync(path)
        _write_durably(self._folder / _INFO_FILE, msgspec.json.encode(moved))
        old, self._shard, self._anew, self.info = self._shard, self._anew, None, moved
        self._keys.clear()
        old.close()
        _remove_other(self._folder, moved)

    def abandon_anew(self) -> None:
        """Cancel a rewrite and remove its shard."""
        if self._anew is not None:
            self._anew.close()
            self._anew = None
            _remove_other(self._folder, self.info)

    def close(self) -> None:
        """Flush and release."""
        self.abandon_anew()
        self._shard.close()
