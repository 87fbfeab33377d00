"""Coding of events in vector points: one for all collections, by the types of an event's fields.

| type of a field | in the payload |
|---|---|
| text, number, None | as it is |
| bool | 0 or 1: a boolean cannot be matched in every store |
| enum | its value |
| time | ISO 8601 |
| anything else | its JSON as text: a payload holds scalars |
| any of a collection with `asked_by` | with all others as one JSON text, `rest`; alone only what is asked by |

What earlier releases wrote is read the same. A field that a payload lacks has its default, else what is empty of its
type: of a time the latest that the payload has, of `source` the place that it tells. Projects' points of up to 0.2.0
have their whole event as JSON in one field.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from enum import Enum
from functools import cache, cached_property, lru_cache
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np
from msgspec import Struct, inspect
from msgspec.structs import fields

from models.events import OutputEvent, SessionName
from models.events.fields import named_in
from models.retrieval.lexical import SparseVector, date_words, terms, weights_of
from models.text.language import language_of
from models.wire.envelope import key_of
from streams.ports import Embedder, PayloadValue, Point, Vectors, VectorStore, Where

Payload = Mapping[str, PayloadValue]
_Event = TypeVar("_Event", bound=Struct)

_WHOLE = "event"
"""Field with the JSON of a project's event, up to 0.2.0."""
REST = "rest"
"""Field with the JSON of all: the engine takes 3 µs for each text field, however short, and a reader needs no other."""
_NAMES = frozenset({"session_id", "user_id", "app_id", "turn"})
_LATEST = object()
_MILLISECONDS = 1_000


def point_key(event: OutputEvent) -> str:
    """Readable id of the point of an event that is the last word on its key: that key."""
    return (key_of(event) or b"").decode()


def milliseconds(time: datetime) -> int:
    """Since 1970."""
    return int(time.timestamp() * _MILLISECONDS)


_AS_THEY_ARE = (
    inspect.StrType,
    inspect.IntType,
    inspect.FloatType,
    inspect.LiteralType,
    inspect.EnumType,
    inspect.DateTimeType,
)
_EMPTY: Mapping[type[inspect.Type], Any] = {
    inspect.StrType: "",
    inspect.IntType: 0,
    inspect.FloatType: 0.0,
    inspect.BoolType: False,
    inspect.ListType: (),
    inspect.DictType: {},
    inspect.DateTimeType: _LATEST,
}


class _Coding(NamedTuple):
    """How payloads become events of a type.

    Attributes:
        flags: Fields that are 0 or 1.
        texts: Fields that are JSON, each with what reads it.
        times: Fields that are times.
        needed: Fields without a default, each with what is read where a payload lacks it; `_LATEST`: the latest time.
    """

    flags: list[str]
    texts: dict[str, msgspec.json.Decoder[Any]]
    times: list[str]
    needed: dict[str, Any]


def _coding(event: type[Struct]) -> _Coding:
    coding = _Coding([], {}, [], {})
    types = {each.name: each.type for each in fields(event)}
    extra = inspect.type_info(event)
    for each in extra.fields if isinstance(extra, inspect.StructType) else ():
        kinds = list(_plain(each.type))
        kind = next(of for of in kinds if not isinstance(of, inspect.NoneType))
        if isinstance(kind, inspect.BoolType):
            coding.flags.append(each.name)
        elif isinstance(kind, inspect.DateTimeType):
            coding.times.append(each.name)
        elif not isinstance(kind, _AS_THEY_ARE):
            coding.texts[each.name] = msgspec.json.Decoder(types[each.name])
        if each.required:
            coding.needed[each.name] = _EMPTY.get(type(kind)) if len(kinds) == 1 else None
    return coding


def _plain(kind: inspect.Type) -> Iterator[inspect.Type]:
    """What a type is, or any of what it may be, without what is said about it."""
    match kind:
        case inspect.Metadata():
            yield from _plain(kind.type)
        case inspect.UnionType():
            yield from chain.from_iterable(map(_plain, kind.types))
        case _:
            yield kind


def _written(value: Any) -> PayloadValue:
    if value is None or type(value) in {str, int, float}:
        plain: PayloadValue = value
        return plain
    match value:
        case datetime():
            return value.isoformat()
        case Enum():
            return str(value.value)
        case bool():
            return int(value)
    return msgspec.json.encode(value).decode()


@lru_cache(maxsize=64)
def _terms_of_day(day: date) -> list[int]:
    return terms(date_words(datetime.combine(day, time(), UTC)))


@dataclass(frozen=True, eq=False)
class Collection(Generic[_Event]):
    """A collection of points, each of which is an event.

    Attributes:
        name: Without the generation.
        event: What its points are read as.
        key: Readable id of an event's point.
        filters: Further fields of the payload, by which points are found; they stand before the event's of that name.
        kept_as: Fields of the event that stand under another name, where a filter has theirs.
        without: Fields of the event that are not kept.
        missing: What is read of fields that are not there and of which nothing is empty.
        text: What an event is embedded by; None: it is not.
        words: What it is found by beside its meaning; None for nothing.
        dated: The day by whose name it is found, too, which is English in every language.
        erased_by: Fields of the payload by which a point is removed that names an erased session; none: its own session
            is all that it names, see `by_session`.
        asked_by: Fields that stand alone in the payload beside the session, user, app and turn; None: every field does.
        aside: Whether a payload is no such event, and names nobody; None: all are.
    """

    name: str
    event: type[_Event]
    key: Callable[[Any], str] = point_key
    filters: Mapping[str, Callable[[Any], PayloadValue]] = field(default_factory=dict)
    kept_as: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    missing: Mapping[str, PayloadValue] = field(default_factory=dict)
    text: Callable[[Any], str] | None = None
    words: Callable[[Any], str] | None = None
    dated: Callable[[Any], datetime | None] | None = None
    erased_by: tuple[str, ...] = ()
    asked_by: tuple[str, ...] | None = None
    aside: Callable[[Payload], bool] | None = None

    def point(
        self,
        event: Struct,
        offset: int | None,
        vector: Vectors,
        *,
        key: str = "",
        extra: Payload | None = None,
        words: SparseVector | None = None,
    ) -> Point:
        """The point of an event.

        Args:
            event: As it is to be read again, or what that derives from.
            offset: Of the event's record; None where that is not known.
            vector: `(dim,)`.
            key: Instead of the event's own.
            extra: Further fields, which stand before all others of their name.
            words: What it is found by, where that is known already.
        """
        kept, alone = self._parted(type(event))
        payload = {self.kept_as.get(name, name): _written(getattr(event, name)) for name in alone}
        added = {name: of(event) for name, of in self.filters.items()}
        if offset is not None:
            added["event_offset"] = offset
        payload |= added
        if self.asked_by is None:
            payload |= extra or {}
        else:
            rest = {name: getattr(event, name) for name in kept} | added | dict(extra or {})
            payload |= {name: value for name, value in (extra or {}).items() if name in self._alone}
            payload[REST] = msgspec.json.encode(rest).decode()
        words = self.found_by(event) if words is None else words
        return Point(key or self.key(event), vector, payload, words, embedded=self.text is not None)

    def found_by(self, event: Struct, own: Sequence[int] | None = None) -> SparseVector | None:
        """Terms of an event, by the language that it is in, and of its day; None where it is not found by words.

        Args:
            event: The event.
            own: Terms of its words, where they are known already.
        """
        if self.words is None:
            return None
        if own is None:
            own = terms(self.words(event), language_of("" if self.text is None else self.text(event)))
        day = None if self.dated is None else self.dated(event)
        return weights_of(own if day is None else [*own, *_terms_of_day(day.astimezone(UTC).date())])

    def event_of(self, payload: Payload) -> _Event:
        """The event of a point."""
        if isinstance(whole := payload.get(_WHOLE), str):
            return msgspec.json.decode(whole, type=self.event)
        coding, given = self._coding, dict(payload)
        if isinstance(rest := given.pop(REST, None), str):
            given |= msgspec.json.decode(rest)
        for name, kept_as in self.kept_as.items():
            given[name] = payload.get(kept_as, payload.get(name, ""))
        for name in coding.flags:
            if payload.get(name) is not None:
                given[name] = bool(payload[name])
        for name, decoder in coding.texts.items():
            if isinstance(text := payload.get(name), str):
                given[name] = decoder.decode(text)
        for name in coding.needed.keys() - given.keys():
            given[name] = self._missing(name, payload)
        return msgspec.convert(given, self.event)

    @cache  # noqa: B019 - collections are constants
    def _parted(self, kind: type[Struct]) -> tuple[list[str], list[str]]:
        """Fields of an event that are kept, and those of them that stand alone."""
        kept = [name for name in kind.__struct_fields__ if name not in self.without]
        return kept, kept if self.asked_by is None else [name for name in kept if name in self._alone]

    @cached_property
    def _alone(self) -> frozenset[str]:
        return _NAMES.union(self.asked_by or (), self.erased_by)

    @property
    def by_session(self) -> bool:
        """Whether points are filed under the one session that they name."""
        return not self.erased_by and "session_id" in self.event.__struct_fields__ and "session_id" not in self.without

    def sessions(self, payload: Payload) -> Iterator[SessionName]:
        """Sessions that a point names: those of its event's app."""
        if self.aside is None or not self.aside(payload):
            event: Any = self.event_of(payload)
            yield from (SessionName(event.app_id, each) for each in named_in(event, "session"))

    async def write(self, store: VectorStore, events: Iterable[tuple[Struct, int]], vectors: Iterable[Vectors]) -> None:
        """Write points of events, each with the offset of its record and a vector `(dim,)`; durable on return."""
        if points := [self.point(*event, vector) for event, vector in zip(events, vectors, strict=True)]:
            await store.upsert(self.name, points)

    async def note(self, store: VectorStore, dim: int, events: Sequence[tuple[Struct, int]]) -> None:
        """Write points of events that nobody looks for by likeness: their vectors `(dim,)` are zero."""
        await self.write(store, events, np.zeros((len(events), dim), dtype=np.float32))

    async def latest(self, store: VectorStore, where: Where, limit: int, *, by: str = "event_offset") -> list[_Event]:
        """Events of the matching points with the highest integer field `by`, highest first."""
        return [self.event_of(found) for found in await store.latest(self.name, where=where, by=by, limit=limit)]

    async def read(self, store: VectorStore, keys: Sequence[str], where: Where) -> dict[str, _Event]:
        """Events by key; keys of points that are not there, or do not match, are missing."""
        found = await store.read(self.name, keys, where=where)
        return {key: self.event_of(payload) for key, payload in found.items()}

    async def nearest(
        self, store: VectorStore, embedder: Embedder, query: str, where: Where, top_k: int
    ) -> list[tuple[_Event, float]]:
        """Events most like a query among the matching points, best first, each with its cosine; none without words."""
        vector = await embedder.embed_query(query)
        if not vector.any():
            return []
        hits = await store.search(self.name, vector, where=where, top_k=top_k)
        return [(self.event_of(hit.payload), hit.score) for hit in hits]

    def _missing(self, name: str, payload: Payload) -> Any:
        empty = self.missing.get(name, self._coding.needed[name])
        if name == "source":
            return {"topic": "", "partition": payload.get("partition", -1), "offset": payload.get("offset", -1)}
        if empty is not _LATEST:
            return empty
        if isinstance(event_ms := payload.get("event_time_ms"), int):
            return datetime.fromtimestamp(event_ms / _MILLISECONDS, UTC)
        times = [str(payload[each]) for each in self._coding.times if payload.get(each)]
        return max(times, default="1970-01-01T00:00:00Z")

    @cached_property
    def _coding(self) -> _Coding:
        return _coding(self.event)
