"""Formats that `turntide produce` reads, each a pure function of a document and the filling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO

import msgspec
from msgspec import Struct

from jobs.produce.formats import chats, datasets
from jobs.produce.formats.filling import Filling, Malformed, reason_of
from models.errors import ConfigurationError, InvalidRecord
from models.events import InputEvent
from models.wire.codec import UNDECODABLE

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_array = msgspec.json.Decoder(list[msgspec.Raw])


class Documents:
    """JSON documents of a stream, each with its line number (in an array: its place), from 1.

    A stream that begins with `[` is one array and is read as a whole; any other is JSON Lines and is read line by
    line, blank lines left out.

    Attributes:
        bytes_read: How far the stream has been given out, for progress.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.bytes_read = 0
        self._documents = self._cut(stream)
        self._first: tuple[int, bytes] | None = None

    def first(self) -> bytes:
        """The first document without taking it, empty for an empty stream."""
        if self._first is None:
            self._first = next(self._documents, None)
        return b"" if self._first is None else self._first[1]

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Give out the documents, once.

        Raises:
            ConfigurationError: The stream begins like an array and is none.
        """
        if self._first is not None:
            yield self._first
        yield from self._documents

    def _cut(self, stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
        for number, line in enumerate(stream, start=1):
            self.bytes_read += len(line)
            document = line.removeprefix(_BYTE_ORDER_MARK).strip() if number == 1 else line.strip()
            if document.startswith(b"["):
                self.bytes_read -= len(line)
                yield from self._elements(document + stream.read())
                return
            if document:
                yield number, document

    def _elements(self, array: bytes) -> Iterator[tuple[int, bytes]]:
        try:
            elements = _array.decode(array)
        except UNDECODABLE as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else error
            raise ConfigurationError(
                f"the input begins with `[` and is no JSON array ({reason}): correct it, or give one JSON object a line"
            ) from None
        for number, element in enumerate(elements, start=1):
            document = bytes(element)
            self.bytes_read += len(document)
            yield number, document


Read = Callable[[bytes, int, Filling], Sequence[Sequence[InputEvent]]]
"""A document, its place in the input and the filling -> its conversations, in order."""


class InputConversation(Struct, frozen=True):
    """Events that belong together, and the line (or the place in the array) where they stand, from 1."""

    line: int
    events: Sequence[InputEvent]


class Format(Struct, frozen=True):
    """One input format.

    Attributes:
        read: Makes conversations of a document.
        marks: Fields that a document of this format has at its top level.
        rule: What it is and how it is filled, for `--help`.
        transcripts: A document holds whole conversations, which end with it.
        by_time: Its times lie far apart: conversations are sorted by their beginning before they are sent.
    """

    read: Read
    marks: tuple[str, ...]
    rule: str
    transcripts: bool = True
    by_time: bool = False


FORMATS: dict[str, Format] = {
    "turntide": Format(chats.read_turntide, ("session_id", "timestamp"), chats.TURNTIDE_RULE, transcripts=False),
    "openai": Format(chats.read_openai, ("messages",), chats.OPENAI_RULE),
    "sharegpt": Format(chats.read_sharegpt, ("conversations",), chats.SHAREGPT_RULE),
    "oasst": Format(datasets.read_oasst, ("message_tree_id", "prompt"), datasets.OASST_RULE, by_time=True),
    "locomo": Format(datasets.read_locomo, ("sample_id", "conversation"), datasets.LOCOMO_RULE, by_time=True),
    "dialogues": Format(chats.read_dialogue, ("turns",), chats.DIALOGUES_RULE),
}


def detect(document: bytes) -> str:
    """Name of the format that the document's top-level fields show.

    Raises:
        ConfigurationError: It shows none.
    """
    try:
        fields = msgspec.json.decode(document, type=dict[str, msgspec.Raw])
    except UNDECODABLE:
        fields = {}
    for name, form in FORMATS.items():
        if fields.keys() >= set(form.marks):
            return name
    raise ConfigurationError(
        f"the first line shows none of the formats {', '.join(FORMATS)}: name one with --format, or see "
        "`turntide produce --help` for what each looks like"
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
    for line, document in documents:
        try:
            found = form.read(document, line, filling)
        except (msgspec.DecodeError, UnicodeDecodeError, InvalidRecord) as error:
            yield Malformed(line, reason_of(error))
        except RecursionError:
            yield Malformed(line, "nested too deeply")
        else:
            yield from (InputConversation(line, events) for events in found if events)


__all__ = ["FORMATS", "Documents", "Filling", "Format", "InputConversation", "Malformed", "conversations", "detect"]
