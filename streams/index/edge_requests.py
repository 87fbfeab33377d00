"""Requests to Qdrant Edge in its own terms: filters and points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from qdrant_edge import FieldCondition, Filter, IsNullCondition, MatchAny, MatchValue, RangeFloat
from qdrant_edge import Point as EdgePoint
from qdrant_edge import SparseVector as EdgeSparseVector

from models.retrieval.lexical import SparseVector
from streams.index import points as rules
from streams.ports import Condition, Point

if TYPE_CHECKING:
    from qdrant_edge import ConditionType, Vector  # stand in the stub


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


def conditions_of(where: Mapping[str, Condition], below: tuple[str, int] | None = None) -> list[ConditionType]:
    """What all entries and, if given, `below` ask for."""
    conditions: list[ConditionType] = [_condition(field, value) for field, value in where.items()]
    if below:
        conditions.append(FieldCondition(below[0], range=RangeFloat(lt=below[1])))
    return conditions


def filter_of(where: Mapping[str, Condition]) -> Filter | None:
    """None without conditions: the engine then counts without looking at points."""
    return Filter(must=conditions_of(where)) if where else None


def selected(fields: Sequence[str] | None) -> list[str] | bool:
    """Payload fields to read; none at all where the key is enough."""
    return False if fields is not None and not fields else rules.selected(fields)


def sparse_of(vector: SparseVector) -> EdgeSparseVector:
    """The same in the engine's terms."""
    return EdgeSparseVector(vector.indices.tolist(), vector.values.tolist())


def _vectors(point: Point) -> Vector:
    dense: list[float] = point.vector.tolist()
    return dense if point.lexical is None else {"": dense, rules.LEXICAL: sparse_of(point.lexical)}


def point_of(point: Point) -> EdgePoint:
    """The point as the engine takes it."""
    return EdgePoint(rules.point_id(point.key), _vectors(point), rules.stored_payload(point))
