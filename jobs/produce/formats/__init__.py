"""Formats that `turntide produce` reads, each a pure function of a document and the filling."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from jobs.produce.formats import calls, chats, datasets, exports
from jobs.produce.formats.documents import Documents
from jobs.produce.formats.filling import Filling, Malformed, Transcript, reason_of
from models.errors import ConfigurationError, InvalidRecord
from models.events import InputEvent
from models.wire.codec import UNDECODABLE

Read = Callable[[bytes, int, Filling], Sequence[Any]]
"""A document, its place in the input and the filling -> its conversations, in order, or what `join` takes.

It raises `msgspec.DecodeError` for a document of another form, and `InvalidRecord` for one that failed, that names no
session, whose role or time cannot be read, or whose message is too long."""
Join = Callable[[Sequence[Any], Filling], Iterator[Transcript]]


class InputConversation(Struct, frozen=True):
    """Events that belong together, and the line (or the place in the array) where they stand, from 1."""

    line: int
    events: Sequence[InputEvent]


class Format(Struct, frozen=True):
    """One input format.

    Attributes:
        read: Makes conversations of a document.
        join: Makes conversations of what `read` found in the whole input; None: a document has whole ones.
        rule: What it is and how it is filled, for `--help`.
        marks: Fields that a document of this format has at its top level; one set of them is enough.
        transcripts: A document holds whole conversations, which end with it.
        by_time: Its times lie far apart: conversations are sorted by their beginning before they are sent.
    """

    read: Read
    join: Join | None
    rule: str
    marks: Sequence[Sequence[str]]
    transcripts: bool = True
    by_time: bool = False


_READERS: dict[str, tuple[Read, Join | None]] = {
    "turntide": (chats.read_turntide, None),
    "batch": (calls.read_batch, calls.transcripts_of),
    "responses": (calls.read_responses, calls.transcripts_of_chains),
    "langsmith": (calls.read_langsmith, calls.transcripts_of),
    "langfuse": (calls.read_langfuse, calls.transcripts_of),
    "openinference": (calls.read_openinference, calls.transcripts_of),
    "otlp": (calls.read_otlp, calls.transcripts_of),
    "chatgpt": (exports.read_chatgpt, None),
    "claude": (exports.read_claude, None),
    "slack": (exports.read_slack, exports.transcripts_of),
    "whatsapp": (exports.read_whatsapp, exports.transcripts_of),
    "openai": (chats.read_openai, None),
    "sharegpt": (chats.read_sharegpt, None),
    "oasst": (datasets.read_oasst, None),
    "locomo": (datasets.read_locomo, None),
    "dialogues": (chats.read_dialogue, None),
}
_TABLE = tomllib.loads(Path(__file__).with_name("formats.toml").read_text("utf-8"))
FORMATS = {name: Format(*_READERS[name], **row) for name, row in _TABLE.items()}
"""By name, in the order in which they are told apart."""
_MOST_FIELDS = 8


def detect(document: bytes) -> str:
    """Name of the format that the document's top-level fields show.

    Raises:
        ConfigurationError: It shows none; says what it looks like, and what each format takes.
    """
    try:
        fields = msgspec.json.decode(document, type=dict[str, msgspec.Raw]).keys()
        named = [name for name in fields if name.isidentifier()][:_MOST_FIELDS]
        looks = f"a JSON object with the fields {', '.join(named)}" if fields else "a JSON object without fields"
    except UNDECODABLE:
        fields, looks = {}.keys(), "no JSON object, no table and no chat's text"
    for name, form in FORMATS.items():
        if any(fields >= set(marks) for marks in form.marks):
            return name
    taken = "; ".join(
        f"{name} {' or '.join('+'.join(marks) for marks in form.marks)}" for name, form in FORMATS.items()
    )
    raise ConfigurationError(
        f"the first line matches none of the formats: it is {looks}. Fields by which a format is recognised: {taken}. "
        "Choose one with --format; `turntide produce --help` describes each"
    )


def conversations(
    form: Format, documents: Iterable[tuple[int, bytes]], filling: Filling, *, by_time: bool = False
) -> Iterator[InputConversation | Malformed]:
    """Conversations of the input in its order, or, with `by_time`, in the order of their beginnings.

    A document that cannot be read gives a `Malformed` in its place, and no turn: half a conversation would be
    another conversation.
    """
    read = _each(form, documents, filling)
    if not by_time:
        yield from read
        return
    whole: list[InputConversation] = []
    for item in read:
        if isinstance(item, Malformed):
            yield item
        else:
            whole.append(item)
    yield from sorted(whole, key=lambda conversation: conversation.events[0].timestamp)


def _each(
    form: Format, documents: Iterable[tuple[int, bytes]], filling: Filling
) -> Iterator[InputConversation | Malformed]:
    whole, line = list[Any](), 1
    for line, document in documents:
        found = _read(lambda: form.read(document, line, filling), line)  # noqa: B023 - called here
        if isinstance(found, Malformed):
            yield found
        elif form.join is not None:
            whole.extend(found)
        else:
            yield from (InputConversation(line, events) for events in found if events)
    for each in form.join(whole, filling) if form.join is not None else ():
        turns = _read(lambda: filling.turns(each.session_id, each.said, user_id=each.user_id, app_id=each.app_id), line)  # noqa: B023
        yield turns if isinstance(turns, Malformed) else InputConversation(line, turns)


def _read(reading: Callable[[], Sequence[Any]], line: int) -> Sequence[Any] | Malformed:
    try:
        return reading()
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidRecord) as error:
        return Malformed(line, reason_of(error))
    except (KeyError, TypeError, AttributeError) as error:
        return Malformed(line, f"it has not the form of its kind ({type(error).__name__})")
    except RecursionError:
        return Malformed(line, "nested too deeply")


__all__ = ["FORMATS", "Documents", "Filling", "Format", "InputConversation", "Malformed", "conversations", "detect"]
