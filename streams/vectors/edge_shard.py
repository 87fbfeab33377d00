"""One collection of Qdrant Edge on disk, blocking: a shard and, beside it, which embedder it belongs to.

Vectors are scanned within the filter, without a graph: every search is filtered by an indexed field, which leaves few
points, and a scan is exact. (Measured: the graph for 100,000 points took 148 s to build and made filtered search
slower.)
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray
from qdrant_edge import (
    CountRequest,
    Direction,
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    HasIdCondition,
    HnswIndexConfig,
    IdfParams,
    IsNullCondition,
    MatchAny,
    MatchValue,
    Modifier,
    OrderBy,
    PayloadSchemaType,
    Query,
    QueryRequest,
    RangeFloat,
    ScrollRequest,
    SearchParams,
    UpdateOperation,
)
from qdrant_edge import Point as EdgePoint
from qdrant_edge import SparseVector as EdgeSparseVector

from models.retrieval.lexical import SparseVector
from streams.ports import Condition, Hit, PayloadValue, Point
from streams.vectors import points as rules

if TYPE_CHECKING:
    from qdrant_edge import ConditionType, PointId, ScoredPoint, Vector  # stand in the stub

_INFO_FILE = "collection.json"
_SHARD_FOLDER = "shard"
_REMEMBERED_KEYS = 131_072
"""About 35 MB: keys of points that were ranked. Reading a payload costs more than finding its point (100 of them
0.3 ms, the search 0.1 to 0.3), and a point's key never changes."""


def _condition(field: str, value: Condition) -> FieldCondition | IsNullCondition:
    match value:
        case bool():
            raise rules.boolean_condition(field)
        case None:
            return IsNullCondition(field)
        case tuple():
            low_high, any_of = rules.split_condition(field, value)
            if low_high:
                return FieldCondition(field, range=RangeFloat(gte=low_high[0], lte=low_high[1]))
            return FieldCondition(field, match=MatchAny(any_of))
        case float():
            return FieldCondition(field, range=RangeFloat(gte=value, lte=value))
        case _:
            return FieldCondition(field, match=MatchValue(value))


def _conditions(where: Mapping[str, Condition], below: tuple[str, int] | None = None) -> list[ConditionType]:
    conditions: list[ConditionType] = [_condition(field, value) for field, value in where.items()]
    if below:
        conditions.append(FieldCondition(below[0], range=RangeFloat(lt=below[1])))
    return conditions


def _filter(where: Mapping[str, Condition]) -> Filter | None:
    """None without conditions: the engine then counts without looking at points."""
    return Filter(must=_conditions(where)) if where else None


def _selected(fields: Sequence[str] | None) -> list[str] | bool:
    """Payload fields to read; none at all where the key is enough."""
    return False if fields is not None and not fields else rules.selected(fields)


def _sparse(vector: SparseVector) -> EdgeSparseVector:
    return EdgeSparseVector(vector.indices.tolist(), vector.values.tolist())


def _vectors(point: Point) -> Vector:
    dense: list[float] = point.vector.tolist()
    return dense if point.lexical is None else {"": dense, rules.LEXICAL: _sparse(point.lexical)}


def _config(dim: int) -> EdgeConfig:
    return EdgeConfig(
        vectors=EdgeVectorParams(size=dim, distance=Distance.Cosine),
        sparse_vectors={rules.LEXICAL: EdgeSparseVectorParams(modifier=Modifier.Idf)},
        hnsw_config=HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=0),
        optimizers=EdgeOptimizersConfig(indexing_threshold=0, default_segment_number=1),
    )


def _write_durably(file: Path, content: bytes) -> None:
    """Whole or not at all, also after a power cut."""
    draft = file.with_suffix(".new")
    with draft.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    draft.rename(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_info(folder: Path) -> rules.CollectionInfo | None:
    """Which vectors the collection in `folder` takes; None if there is no collection."""
    try:
        return msgspec.json.decode((folder / _INFO_FILE).read_bytes(), type=rules.CollectionInfo)
    except FileNotFoundError:
        return None


class EdgeCollection:
    """A shard that is open. Not for two threads at once."""

    def __init__(self, shard: EdgeShard, info: rules.CollectionInfo) -> None:
        self._shard = shard
        self._keys: dict[PointId, str] = {}
        self.info = info

    @classmethod
    def load(cls, folder: Path, info: rules.CollectionInfo) -> EdgeCollection:
        """Open what stands in `folder`, replaying its write-ahead log."""
        shard = EdgeShard.load(str(folder / _SHARD_FOLDER))
        shard.optimize()  # gives the space of deleted points back; 0.6 s after deleting 20,000 of 40,000
        return cls(shard, info)

    @classmethod
    def create(cls, folder: Path, info: rules.CollectionInfo) -> EdgeCollection:
        """Make an empty collection. Its info file comes last: without it there is no collection."""
        shutil.rmtree(folder, ignore_errors=True)
        (folder / _SHARD_FOLDER).mkdir(parents=True)
        shard = EdgeShard.create(str(folder / _SHARD_FOLDER), _config(info.dim))
        for field in rules.KEYWORD_FIELDS:
            shard.update(UpdateOperation.create_field_index(field, PayloadSchemaType.Keyword))
        for field in rules.INTEGER_FIELDS:
            shard.update(UpdateOperation.create_field_index(field, PayloadSchemaType.Integer))
        shard.flush()
        _write_durably(folder / _INFO_FILE, msgspec.json.encode(info))
        return cls(shard, info)

    def upsert(self, points: Sequence[Point]) -> None:
        """Write checked points into the log and memory; durable after `flush`."""
        batch = [EdgePoint(rules.point_id(point.key), _vectors(point), rules.stored_payload(point)) for point in points]
        self._shard.update(UpdateOperation.upsert_points(batch))

    def search(
        self,
        vector: NDArray[np.float32],
        where: Mapping[str, Condition],
        top_k: int,
        fields: Sequence[str] | None = None,
    ) -> list[Hit]:
        """Nearest first."""
        request = QueryRequest(
            limit=top_k,
            query=Query.Nearest(vector.tolist()),
            filter=_filter(where),
            with_payload=_selected(fields),
        )
        return self._hits(self._shard.query(request))

    def search_lexical(
        self, query: SparseVector, where: Mapping[str, Condition], top_k: int, fields: Sequence[str] | None = None
    ) -> list[Hit]:
        """Highest BM25 first."""
        within = _filter(where)
        request = QueryRequest(
            limit=top_k,
            query=Query.Nearest(_sparse(query), using=rules.LEXICAL),
            filter=within,
            params=SearchParams(idf=IdfParams(corpus=within)),
            with_payload=_selected(fields),
        )
        return self._hits(self._shard.query(request))

    def _hits(self, found: Sequence[ScoredPoint]) -> list[Hit]:
        """Hits of points that came with their payload, or with none."""
        if not found or found[0].payload is not None:
            return [rules.hit(point.payload or {}, point.score) for point in found]
        ids = [point.id for point in found]
        try:
            keys = [self._keys[each] for each in ids]
        except KeyError:
            keys = self._found_keys(ids)
        return [Hit(key, point.score, {}) for key, point in zip(keys, found, strict=True)]

    def _found_keys(self, ids: Sequence[PointId]) -> list[str]:
        """Keys of points, read where they are not remembered."""
        unknown = [each for each in ids if each not in self._keys]
        if len(self._keys) + len(unknown) > _REMEMBERED_KEYS:
            self._keys.clear()
            unknown = list(ids)
        read = self._shard.retrieve(unknown, with_payload=[rules.KEY_FIELD], with_vector=False)
        self._keys |= {record.id: str((record.payload or {})[rules.KEY_FIELD]) for record in read}
        return [self._keys[each] for each in ids]

    def read(self, keys: Sequence[str], where: Mapping[str, Condition]) -> list[Hit]:
        """Those of the keys' points that match; the score means nothing."""
        ids = HasIdCondition({rules.point_id(key) for key in keys})
        request = ScrollRequest(limit=len(keys), filter=Filter(must=[ids, *_conditions(where)]), with_payload=True)
        records, _ = self._shard.scroll(request)
        return [rules.hit(record.payload or {}, 0.0) for record in records]

    def latest(self, where: Mapping[str, Condition], by: str, limit: int) -> list[dict[str, PayloadValue]]:
        """Highest `by` first."""
        request = ScrollRequest(
            limit=limit, filter=_filter(where), with_payload=True, order_by=OrderBy(by, Direction.Desc)
        )
        records, _ = self._shard.scroll(request)
        return [rules.given_payload(record.payload or {}) for record in records]

    def count(self, where: Mapping[str, Condition]) -> int:
        """Count exactly."""
        return int(self._shard.count(CountRequest(exact=True, filter=_filter(where))))

    def delete(self, where: Mapping[str, Condition], below: tuple[str, int] | None) -> None:
        """Delete what matches; durable after `flush`."""
        self._shard.update(UpdateOperation.delete_points_by_filter(Filter(must=_conditions(where, below))))

    def flush(self) -> None:
        """Make everything written so far durable."""
        self._shard.flush()

    def close(self) -> None:
        """Flush and release."""
        self._shard.close()
