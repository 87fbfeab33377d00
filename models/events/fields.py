"""Meaning of the fields of events, on the fields themselves: description, privacy class, unit, and whose name it is.

A field is `name: Annotated[type, about(...)]`; its type may be one of the vocabulary below and say a part of it. From
there (`meaning_of`) schemas, the dictionary, the archive's columns, retention and masking know what a field is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct


class Privacy(StrEnum):
    """Classes of fields and of the archive's columns, the most private first."""

    CONTENT = "content"
    """Words of people, or made of their words."""
    IDENTIFIER = "identifier"
    """Names a session, a user, or what is tied to one."""
    BEHAVIOUR = "behaviour"
    """Tells how somebody behaved or was judged, in numbers and fixed words."""
    OPERATIONAL = "operational"
    """Tells how the system ran: apps, places in the log, sizes, versions."""


CONTENT, IDENTIFIER, BEHAVIOUR, OPERATIONAL = Privacy

Named = Literal[
    "", "session", "user", "app", "project", "topic", "memory", "item", "alert", "turn", "event", "request", "operator"
]
"""Whose name a field is; `item`: anything that a project remembers, `operator`: whoever gave a command."""


class Meaning(NamedTuple):
    """What a field means."""

    description: str
    privacy: Privacy
    unit: str = ""
    """Of its numbers; empty for counts, for times, and where there are no numbers."""
    names: Named = ""


def about(text: str = "", privacy: Privacy | None = None, *, unit: str = "", names: Named = "", **rules: Any) -> Meta:
    """What a field means, for its annotation; what is left out is as its type says.

    `rules` are what a value must keep to when it is decoded, see `msgspec.Meta`.

    >>> class Rated(Struct):
    ...     stars: Annotated[int, about("How good it was.", BEHAVIOUR, unit="1-5", ge=1, le=5)]
    >>> meaning_of(Rated)["stars"].unit
    '1-5'
    """
    said = {"privacy": privacy, "unit": unit, "names": names}
    return Meta(description=text or None, extra={key: value for key, value in said.items() if value}, **rules)


TYPE = Meaning("Type of the event.", BEHAVIOUR)
"""Of the tag by which events on one topic are told apart: it is no field."""


@cache
def meaning_of(struct: type[Struct]) -> dict[str, Meaning]:
    """Field → what it means, in the order of the fields.

    Raises:
        TypeError: A field has no description, or no privacy class.
    """
    hints = get_type_hints(struct, include_extras=True)
    said = {field: _said(hints[field]) for field in struct.__struct_fields__}
    if silent := [field for field, has in said.items() if not {"description", "privacy"} <= has.keys()]:
        raise TypeError(f"{struct.__name__}: {', '.join(silent)} want `about(...)`, see models.events.fields")
    return {field: Meaning(**has) for field, has in said.items()}


def parts_of(*structs: type[Struct]) -> list[type[Struct]]:
    """These, and every structure that their fields are made of, each once."""
    found: dict[type[Struct], None] = dict.fromkeys(structs)
    waiting = list(found)
    while waiting:
        parts = {part for hint in get_type_hints(waiting.pop()).values() for part in _structs_in(hint)}
        waiting += (new := sorted(parts - found.keys(), key=lambda part: part.__name__))
        found |= dict.fromkeys(new)
    return list(found)


@cache
def paths_of_names(struct: type[Struct], names: Named) -> tuple[tuple[str, ...], ...]:
    """Where a structure has names of somebody or something: the ways from field to field that lead there.

    >>> from models.events import EpisodeCompressed
    >>> paths_of_names(EpisodeCompressed, "session")
    (('session_id',), ('turns', 'session_id'))
    """
    hints = get_type_hints(struct)
    paths: list[tuple[str, ...]] = []
    for field, meaning in meaning_of(struct).items():
        parts = dict.fromkeys(_structs_in(hints[field]))
        below = (path for part in parts for path in paths_of_names(part, names))
        paths += [(field,)] if meaning.names == names else [(field, *path) for path in below]
    return tuple(dict.fromkeys(paths))


def named_in(event: Struct, names: Named) -> Iterator[str]:
    """Names of somebody or something in an event and its parts; empty ones are none."""
    for path in paths_of_names(type(event), names):
        yield from _at(event, path)


def _at(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for each in value:
            yield from _at(each, path)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _at(each, path)
    elif value and path:
        yield from _at(getattr(value, path[0], ""), path[1:])
    elif value:
        yield value


def _said(hint: Any) -> dict[str, Any]:
    """What an annotation says, that of a field before that of its type."""
    if get_origin(hint) in (Union, UnionType):
        return next(filter(None, map(_said, get_args(hint))), {})
    if get_origin(hint) is not Annotated:
        return {}
    said = _said(hint.__origin__)
    for meta in hint.__metadata__:
        said |= (meta.extra or {}) | ({"description": meta.description} if meta.description else {})
    return said


def _structs_in(hint: Any) -> Iterator[type[Struct]]:
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    for each in get_args(hint):
        yield from _structs_in(each)


# --- the vocabulary: types with rules of decoding, for what comes in ------------------------------------------

PRINTABLE = r"^[^\x00-\x1f\x7f-\xa0\xad]*$"
"""Pattern that schemas give for ids. Decoders ask `str.isprintable`, which also refuses invisible characters beyond."""


def printable(shortest: int, longest: int) -> Meta:
    """Rule of an id: so many printable characters."""
    return Meta(min_length=shortest, max_length=longest, extra_json_schema={"pattern": PRINTABLE})


NAMED = printable(1, 256)
"""Of an id chosen by the producer: 1-256 printable characters."""
Identifier = Annotated[str, NAMED]
Ratio = Annotated[float, about(privacy=BEHAVIOUR, unit="0-1", ge=0.0, le=1.0)]
MessageId = Annotated[
    Identifier, about("Id that the producer gave the message, unique in its session.", IDENTIFIER, names="turn")
]
TurnNumber = Annotated[int, about(privacy=BEHAVIOUR, unit="turn number", ge=0, le=2**53)]
UtcTime = Annotated[datetime, about(privacy=BEHAVIOUR, tz=True)]
Count = Annotated[int, about(privacy=BEHAVIOUR, ge=0, le=2**53)]
EventTime = Annotated[UtcTime, about("Event time with a UTC offset (RFC 3339).")]
StartTime = Annotated[UtcTime, about("Event time of the first turn.")]
EndTime = Annotated[UtcTime, about("Event time of the last turn.")]

# --- without: what goes out is made, not decoded --------------------------------------------------------------

SessionId = Annotated[str, about("Id of the session (conversation).", IDENTIFIER, names="session")]
UserId = Annotated[str, about("Id of the user in the conversation.", IDENTIFIER, names="user")]
AppId = Annotated[str, about("Id of the app.", OPERATIONAL, names="app")]
SessionIds = Annotated[list[str], about("Ids of the sessions (conversations).", IDENTIFIER, names="session")]
ProjectId = Annotated[str, about("Id of the project in its app.", IDENTIFIER, names="project")]
AlertId = Annotated[str, about("Id of the alert, constant for its life.", IDENTIFIER, names="alert")]
TopicId = Annotated[str, about("Id of the topic in its session, constant for its life.", IDENTIFIER, names="topic")]
EventId = Annotated[
    str, about("Deterministic id of the event: a repeat after a crash has the same id.", IDENTIFIER, names="event")
]
RequestName = Annotated[
    str, about("Id of the request, chosen by the requester; its result carries the id.", IDENTIFIER, names="request")
]
Operator = Annotated[str, about("Name of the caller's token, never the token itself.", IDENTIFIER, names="operator")]
Share = Annotated[float, about(privacy=BEHAVIOUR, unit="0-1")]
Score = Annotated[
    Share, about("Score that sets the mode, 0-1: the calibrated probability; without a model the combined score.")
]
UnsupportedTurns = Annotated[
    dict[str, int], about("User turns without a risk, by language, as the scorer does not support it.", BEHAVIOUR)
]
Importance = Annotated[Share, about("Importance, 0-1.")]
Confidence = Annotated[Share, about("Confidence of the extractor, 0-1; 1 for a correction.")]
TurnIndex = Annotated[int, about("Turn number: position in the session.", BEHAVIOUR, unit="turn number")]
FirstTurn = Annotated[TurnIndex, about("Lowest turn number of the range, inclusive.")]
LastTurn = Annotated[TurnIndex, about("Highest turn number of the range, inclusive.")]
Tokens = Annotated[int, about("Tokens of the summary.", BEHAVIOUR, unit="tokens")]
Bytes = Annotated[int, about("UTF-8 bytes of the summary.", BEHAVIOUR, unit="bytes")]
Summary = Annotated[str, about("Summary of what was said.", CONTENT)]
SummarisedBy = Annotated[str, about("Name of the summariser.", OPERATIONAL)]
KeyTopics = Annotated[list[str], about("Topics of the text, most prominent first.", CONTENT)]
Embedding = Annotated[
    list[float], about("Embedding of the summary, of unit length; empty if it could not be embedded.", BEHAVIOUR)
]
EmbeddedBy = Annotated[str, about("Name of the embedder; empty without an embedding.", OPERATIONAL)]
