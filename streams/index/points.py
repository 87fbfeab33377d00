"""Points and requests as both vector stores have them: ids, payload fields, filters, and what a collection takes."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from models.errors import ConfigurationError
from models.events.ids import named_id
from models.retrieval.lexical import SparseVector
from streams.ports import Condition, Either, Keys, PayloadValue, Point, Query, SearchHit, Where

KEY_FIELD = "_key"
"""Payload field with the readable key, since Qdrant takes only integers and UUIDs as ids."""
LEXICAL = "lexical"
"""Name of the sparse vector for BM25; the dense one has none."""
KEYWORD_FIELDS = ("session_id", "user_id", "app_id", "owner_key")
INTEGER_FIELDS = ("turn", "event_offset", "revision")
"""Payload fields with an index: those of large sets and those to order by. A filter on another field is exact too, but
scans what the others leave."""

_COLLECTION_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class CollectionInfo(msgspec.Struct, frozen=True):
    """Which vectors a collection takes, kept with it. Those made before lexical search have no place for words."""

    embedder: str
    dim: int
    lexical: bool = False

    def require(self, collection: str, *, embedder: str, dim: int | None) -> None:
        """Refuse vectors of another model; `dim` None checks the embedder only.

        Raises:
            ConfigurationError: Cosines between two models' vectors mean nothing.
        """
        if self.embedder != embedder or dim not in (None, self.dim):
            offered = f"{embedder} with {dim} dimensions" if dim is not None else embedder
            raise ConfigurationError(
                f"vector collection {collection} holds vectors of {self.embedder} with {self.dim} dimensions and "
                f"cannot take those of {offered}: set vectors.embedder back, or index into a new store"
            )

    def require_lexical(self, collection: str) -> None:
        """Refuse words where there is no place for them.

        Raises:
            ConfigurationError: The collection was made before there was lexical search.
        """
        if not self.lexical:
            raise ConfigurationError(
                f"vector collection {collection} is older than lexical search and has no words: rebuild it with "
                f"`turntide ops reindex` from its own content, or with `turntide ops reset index` from the topics"
            )


@lru_cache(maxsize=16_384)
def point_id(key: str) -> str:
    """Id of a point in Qdrant: UUIDv5 of its readable key."""
    return named_id("point", key)


def stored_payload(point: Point) -> dict[str, PayloadValue]:
    """The payload as it is written: with the readable key."""
    return {**point.payload, KEY_FIELD: point.key}


def given_payload(stored: dict[str, PayloadValue]) -> dict[str, PayloadValue]:
    """The payload as it was given, in its place: without the readable key."""
    stored.pop(KEY_FIELD, None)
    return stored


def renamed(stored: Mapping[str, PayloadValue], keys: Mapping[str, str]) -> dict[str, PayloadValue]:
    """The payload as it is written, with a new readable key by the old one."""
    return {**stored, KEY_FIELD: keys[str(stored[KEY_FIELD])]}


def selected(fields: Sequence[str] | None) -> list[str] | bool:
    """Payload fields to ask for, with the readable key; True for all."""
    return True if fields is None else [*fields, KEY_FIELD]


def hit(stored: dict[str, PayloadValue], score: float) -> SearchHit:
    """A search result from what is stored."""
    return SearchHit(key=str(stored[KEY_FIELD]), score=score, payload=given_payload(stored))


def require_collection_name(collection: str) -> None:
    """Refuse names that are no folder name or no name in Qdrant.

    Raises:
        ConfigurationError: Other characters than letters, digits, `_` and `-`, or more than 64.
    """
    if not _COLLECTION_NAME.fullmatch(collection):
        raise ConfigurationError(f"vector collection {collection!r}: use 1-64 letters, digits, _ or -")


def require_vectors(collection: str, vectors: Sequence[NDArray[np.float32]], dim: int) -> None:
    """Refuse vectors, at least one, that cannot be compared in this collection.

    Raises:
        ConfigurationError: Another dimension, or a number that is not finite.
    """
    for vector in vectors:
        if vector.shape != (dim,):
            raise ConfigurationError(
                f"vector collection {collection} takes {dim} dimensions, got shape {vector.shape}: "
                f"use the embedder of the collection"
            )
    if not np.isfinite(np.concatenate(vectors)).all():
        raise ConfigurationError(f"vector collection {collection}: a vector has a number that is not finite")


def checked(collection: str, points: Sequence[Point], info: CollectionInfo) -> list[Point]:
    """The points to write, at least one: the last of each key, every vector fit for the collection.

    Raises:
        ConfigurationError: A vector does not fit; nothing was written.
    """
    last = [*{point.key: point for point in points}.values()]
    require_vectors(collection, [point.vector for point in last], info.dim)
    if any(point.lexical is not None for point in last):
        info.require_lexical(collection)
    return last


# --- requests: the server's client and the embedded engine have classes of their own, alike but for their names


class Terms(NamedTuple):
    """Classes of the parts of a request."""

    field: Callable[..., Any]
    filter: Callable[..., Any]
    range: Callable[..., Any]
    times: Callable[..., Any]
    value: Callable[[str], Any]
    any_of: Callable[[list[str]], Any]
    null: Callable[[str], Any]
    ids: Callable[[list[str]], Any]
    sparse: Callable[[list[int], list[float]], Any]

    def conditions(self, where: Where, below: tuple[str, int] | None = None) -> list[Any]:
        """What all entries and, if given, `below` ask for.

        Raises:
            ConfigurationError: A value cannot be matched in every store, or nothing would match.
        """
        conditions = [self._condition(field, value) for field, value in where.items()]
        return [*conditions, self.field(key=below[0], range=self.range(lt=below[1]))] if below else conditions

    def _condition(self, field: str, value: Condition) -> Any:
        match value:
            case bool():
                raise ConfigurationError(
                    f"filter on {field}: booleans cannot be matched in every store; keep it as 0 or 1"
                )
            case None:
                return self.null(field)
            case Either():
                return self.filter(should=[self.filter(must=self.conditions(each)) for each in value.of])
            case Keys():
                return self.ids([point_id(key) for key in value.of])
            case int() | float():  # an index on integers finds ranges alone
                return self._within(field, value, value)
            case tuple():
                return self._among(field, value)
            case _:
                return self.field(key=field, match=self.value(value))

    def _among(self, field: str, values: tuple[Any, ...]) -> Any:
        if not values:
            raise ConfigurationError(f"filter on {field}: any of no values matches nothing; leave the search out")
        if isinstance(values[0], str):
            # Measured: any of one value takes a fifth to a third longer than that value, of 10,000 points 0.25 ms.
            match = self.value(values[0]) if len(values) == 1 else self.any_of(list(values))
            return self.field(key=field, match=match)
        return self._within(field, *values)

    def _within(self, field: str, low: float | datetime, high: float | datetime) -> Any:
        if isinstance(low, datetime) and isinstance(high, datetime):
            return self.field(key=field, range=self.times(gte=low.isoformat(), lte=high.isoformat()))
        return self.field(key=field, range=self.range(gte=low, lte=high))

    def vector(self, vector: Query) -> Any:
        """A dense or sparse vector."""
        if isinstance(vector, SparseVector):
            return self.sparse(vector.indices.tolist(), vector.values.tolist())
        return vector.tolist()

    def vectors(self, point: Point) -> Any:
        """All vectors of a point."""
        if not point.embedded:
            return {}
        dense = self.vector(point.vector)
        return dense if point.lexical is None else {"": dense, LEXICAL: self.vector(point.lexical)}
