"""An input cut into JSON documents: one a line, or the elements of one array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from models.errors import ConfigurationError

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
        except msgspec.DecodeError as error:
            raise ConfigurationError(
                f"the input begins with `[` and is no JSON array ({error}): mend it, or give one JSON object a line"
            ) from None
        for number, element in enumerate(elements, start=1):
            document = bytes(element)
            self.bytes_read += len(document)
            yield number, document
