"""Requests to a Qdrant server: filters, points, and batches cut to what a request may hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from qdrant_client import models

from models.retrieval.lexical import SparseVector
from streams.index import points as rules
from streams.ports import Condition, Point

MAX_POINTS_PER_REQUEST = 256
MAX_BYTES_PER_REQUEST = 8 * 1024 * 1024
"""A quarter of what Qdrant accepts by default (`max_request_size_mb: 32`)."""


def _condition(field: str, value: Condition) -> models.Condition:
    match value:
        case bool():
            raise rules.boolean_condition(field)
        case None:
            return models.IsNullCondition(is_null=models.PayloadField(key=field))
        case tuple():
            low_high, any_of = rules.split_condition(field, value)
            if low_high:
                return models.FieldCondition(key=field, range=models.Range(gte=low_high[0], lte=low_high[1]))
            return models.FieldCondition(key=field, match=models.MatchAny(any=any_of))
        case float():
            return models.FieldCondition(key=field, range=models.Range(gte=value, lte=value))
        case _:
            return models.FieldCondition(key=field, match=models.MatchValue(value=value))


def filter_of(
    where: Mapping[str, Condition], *, below: tuple[str, int] | None = None, keys: Sequence[str] | None = None
) -> models.Filter:
    """What all conditions and, if given, `below` and one of the keys let through."""
    conditions = [_condition(field, value) for field, value in where.items()]
    if below:
        conditions.append(models.FieldCondition(key=below[0], range=models.Range(lt=below[1])))
    if keys is not None:
        conditions.append(models.HasIdCondition(has_id=[rules.point_id(key) for key in keys]))
    return models.Filter(must=conditions)


def _estimated_bytes(point: Point) -> int:
    """Upper estimate of a point in JSON: 14 characters per number, 6 per escaped character."""
    texts = (value for value in point.payload.values() if isinstance(value, str))
    numbers = len(point.vector) + (2 * len(point.lexical) if point.lexical else 0)
    return 14 * numbers + 6 * sum(map(len, texts)) + 1_024


def sparse_of(vector: SparseVector) -> models.SparseVector:
    """The same in Qdrant's terms."""
    return models.SparseVector(indices=vector.indices.tolist(), values=vector.values.tolist())


def _vectors(point: Point) -> models.VectorStruct:
    dense: list[float] = point.vector.tolist()
    return dense if point.lexical is None else {"": dense, rules.LEXICAL: sparse_of(point.lexical)}


def requests_of(points: Sequence[Point]) -> Iterator[list[Point]]:
    """Cut a batch into requests that the server accepts; a point is never cut."""
    request: list[Point] = []
    size = 0
    for point in points:
        point_bytes = _estimated_bytes(point)
        if request and (len(request) == MAX_POINTS_PER_REQUEST or size + point_bytes > MAX_BYTES_PER_REQUEST):
            yield request
            request, size = [], 0
        request.append(point)
        size += point_bytes
    if request:
        yield request


def struct_of(point: Point) -> models.PointStruct:
    """The point as it is sent."""
    return models.PointStruct(id=rules.point_id(point.key), vector=_vectors(point), payload=rules.stored_payload(point))
