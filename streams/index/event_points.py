"""Encoding of events in vector points: the same for all collections, derived from the types of an event's fields.

| type of a field | in the payload |
|---|---|
| text, number, None | unchanged |
| bool | 0 or 1: not every store can match a boolean |
| enum | its value |
| time | ISO 8601 |
| any other | JSON as text, since a payload has only scalars |
| any, in a collection with `asked_by` | all fields as one JSON text, `rest`; separately only the fields of filters |

Points of earlier releases are read in the same way. A field missing in a payload has its default, else the empty value
of its type: for a time the latest time in the payload, for `source` the stored position. Project points of releases up
to 0.2.0 have their whole event as JSON in one field.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
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
"""Field with the JSON of a project's event, in releases up to 0.2.0."""
REST = "rest"
"""Field with the JSON of all fields: the engine takes 3 µs for each text field, and readers need only this one."""
_NAMES = frozenset({"session_id", "user_id", "app_id", "turn"})
_LATEST = object()
_MILLISECONDS = 1_000


def point_key(event: OutputEvent) -> str:
    """Readable id of the point of an event whose latest record counts: its key."""
    return (key_of(event) or b"").decode()


def milliseconds(time: datetime) -> int:
    """Unix time in milliseconds."""
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
    """Decoding of payloads to events of a type.

    Attributes:
        flags: Boolean fields, stored as 0 or 1.
        texts: Fields stored as JSON, with their decoders.
        times: Fields with times.
        needed: Fields without a default, with their value if a payload lacks them; `_LATEST`: the latest time.
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
    """The plain types of a type: members of a union, without metadata."""
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
    """A collection of points; each point is an event.

    Attributes:
        name: Name without the generation.
        event: Type of its events.
        key: Readable id of an event's point.
        filters: Further payload fields for filters; they take precedence over event fields of the same name.
        kept_as: Event field → its name in the payload, if a filter has the original name.
        without: Event fields that are not stored.
        missing: Values of fields that a payload lacks and that have no empty value.
        text: Text to embed; None: no embedding.
        words: Text for lexical search; None: no lexical search.
        dated: Day whose English name is also a search term, in any language.
        erased_by: Payload fields that identify a point that names an erased session; none: the point names only its own
            session, see `by_session`.
        asked_by: Fields stored separately besides session, user, app and turn; None: all fields are.
        aside: Whether a payload is another record without names; None: none is.
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
            event: The event to store, or a base type of it.
            offset: Offset of the event's record; None if unknown.
            vector: `(dim,)`.
            key: Key of the point instead of the event's own.
            extra: Further fields, which take precedence over all others of the same name.
            words: Lexical vector, if it is already computed.
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
        """Weighted terms of an event's words, in its language, and of its day; None without lexical search.

        Args:
            event: The event.
            own: Terms of its words, if they are already computed.
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
        if isinstance(rest := payload.get(REST), str) and not self.kept_as:
            begin, whole_event = self._rest
            with suppress(msgspec.ValidationError):  # what an earlier release wrote may lack a field
                return whole_event.decode(begin + rest[1:])
        coding, given = self._coding, dict(payload)
        if isinstance(rest, str):
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
        """Stored fields of an event, and those of them that are stored separately."""
        kept = [name for name in kind.__struct_fields__ if name not in self.without]
        return kept, kept if self.asked_by is None else [name for name in kept if name in self._alone]

    @cached_property
    def _alone(self) -> frozenset[str]:
        return _NAMES.union(self.asked_by or (), self.erased_by)

    @property
    def by_session(self) -> bool:
        """Whether a point names only its own session, in the field `session_id`."""
        return not self.erased_by and "session_id" in self.event.__struct_fields__ and "session_id" not in self.without

    def sessions(self, payload: Payload) -> Iterator[SessionName]:
        """Sessions that a point names, all in its event's app."""
        if self.aside is None or not self.aside(payload):
            event: Any = self.event_of(payload)
            yield from (SessionName(event.app_id, each) for each in named_in(event, "session"))

    async def write(self, store: VectorStore, events: Iterable[tuple[Struct, int]], vectors: Iterable[Vectors]) -> None:
        """Write points of events, each with the offset of its record and a vector `(dim,)`; durable on return."""
        if points := [self.point(*event, vector) for event, vector in zip(events, vectors, strict=True)]:
            await store.upsert(self.name, points)

    async def note(self, store: VectorStore, dim: int, events: Sequence[tuple[Struct, int]]) -> None:
        """Write points of events without similarity search: their vectors `(dim,)` are zero."""
        await self.write(store, events, np.zeros((len(events), dim), dtype=np.float32))

    async def latest(self, store: VectorStore, where: Where, limit: int, *, by: str = "event_offset") -> list[_Event]:
        """Events of the matching points with the highest integer field `by`, highest first."""
        return [self.event_of(found) for found in await store.latest(self.name, where=where, by=by, limit=limit)]

    async def read(self, store: VectorStore, keys: Sequence[str], where: Where) -> dict[str, _Event]:
        """Events by key, without points that do not exist or do not match."""
        found = await store.read(self.name, keys, where=where)
        return {key: self.event_of(payload) for key, payload in found.items()}

    async def nearest(
        self, store: VectorStore, embedder: Embedder, query: str, where: Where, top_k: int
    ) -> list[tuple[_Event, float]]:
        """Matching events nearest to a query, best first, with cosines; empty for a query without known words."""
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
    def _rest(self) -> tuple[str, msgspec.json.Decoder[_Event]]:
        """Begin of the JSON of `rest`, with empty values of needed fields that are not stored, and its decoder."""
        blank = {name: self._missing(name, {}) for name in self.without if name in self._coding.needed}
        return msgspec.json.encode(blank).decode()[:-1] + "," * bool(blank), msgspec.json.Decoder(self.event)

    @cached_property
    def _coding(self) -> _Coding:
        return _coding(self.event)
