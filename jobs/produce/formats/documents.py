"""An input cut into JSON documents, whatever it is: lines, an array, one object, a page of an API, a table, a chat."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO

import msgspec

from jobs.produce.formats.exports import PlainChat, is_whatsapp
from models.errors import ConfigurationError
from models.wire.codec import UNDECODABLE

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PARQUET = b"PAR1"
_PAGE = (b'{"data"', b'{"meta"', b"{\n")
_CELL_BYTES = 2**31 - 1
"""Of a CSV file: a cell may hold a conversation."""
_array = msgspec.json.Decoder(list[msgspec.Raw])
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Documents:
    """JSON documents of a stream, each with its line number (in an array or a table: its place), from 1.

    JSON Lines are read line by line, blank ones left out. Read as a whole are: an array, by its elements; an object
    over several lines, or a page `{"data": […], "meta": …}` by what it lists; a CSV or Parquet table, a row an object;
    a chat's text (`is_whatsapp`), which is one document.

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
            ConfigurationError: The stream begins like an array or a table and is none.
        """
        if self._first is not None:
            yield self._first
        yield from self._documents

    def _cut(self, stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
        numbered = enumerate(stream, start=1)
        for number, line in numbered:
            document = line.removeprefix(_BYTE_ORDER_MARK).strip() if number == 1 else line.strip()
            if not document:
                self.bytes_read += len(line)
                continue
            if (whole := self._whole(line, document, stream)) is not None:
                yield from whole
                return
            yield from self._lines(chain([(number, _completed(document, stream))], numbered))
            return

    def _lines(self, lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        for number, line in lines:
            self.bytes_read += len(line)
            for document in _listed(line.strip()):
                yield number, document

    def _whole(self, line: bytes, document: bytes, stream: BinaryIO) -> Iterator[tuple[int, bytes]] | None:
        """Documents of what has to be read as a whole; None for lines."""
        if document.startswith(b"["):
            if is_whatsapp(document.decode(errors="replace")):
                return self._chat(line + stream.read())
            return self._elements(document + stream.read())
        if document.startswith(_PARQUET):
            return self._rows(_parquet(line + stream.read()))
        if document.startswith(b"{"):
            return None
        text = document.decode(errors="replace")
        if is_whatsapp(text):
            return self._chat(line + stream.read())
        return self._rows(_csv(document + b"\n" + stream.read())) if text.count(",") > 1 else None

    def _elements(self, array: bytes) -> Iterator[tuple[int, bytes]]:
        try:
            elements = _array.decode(array)
        except UNDECODABLE as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else error
            raise ConfigurationError(
                f"the input begins with `[` but is not a JSON array ({reason}): correct it, or use one object a line"
            ) from None
        return self._counted(enumerate(map(bytes, elements), start=1))

    def _rows(self, rows: Iterator[dict[str, Any]]) -> Iterator[tuple[int, bytes]]:
        return self._counted(
            (number, msgspec.json.encode(row, enc_hook=str)) for number, row in enumerate(rows, start=1)
        )

    def _chat(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        whole = PlainChat(text.removeprefix(_BYTE_ORDER_MARK).decode(errors="replace"))
        return self._counted(iter([(1, msgspec.json.encode(whole))]))

    def _counted(self, documents: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        for number, document in documents:
            self.bytes_read += len(document)
            yield number, document


def _completed(document: bytes, stream: BinaryIO) -> bytes:
    """The first line, or the whole of an object that goes on; one that is broken stays, and is told as a line.

    Raises:
        ConfigurationError: It is like an object of several lines and is none.
    """
    if _is_object(document) or not document.endswith((b",", b"{", b"[", b":")):
        return document
    if not _is_object(document := document + b"\n" + stream.read()):
        raise ConfigurationError("the input begins with `{` but is not a JSON object, nor one a line: correct it")
    return document


def _listed(document: bytes) -> list[bytes]:
    """What a page of an API lists; any other document, if it is not blank, by itself."""
    if document.startswith(_PAGE) and _is_object(document):
        fields = _object.decode(document)
        if fields.keys() <= {"data", "meta"} and bytes(fields.get("data", b"")).startswith(b"["):
            return [bytes(each) for each in _array.decode(fields["data"])]
    return [document] if document else []


def _is_object(document: bytes) -> bool:
    try:
        _object.decode(document)
    except UNDECODABLE:
        return False
    return True


def _csv(data: bytes) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(_CELL_BYTES)
    for row in csv.DictReader(io.StringIO(data.decode(errors="replace"), newline="")):
        yield {name: value for name, value in row.items() if name and value}


def _parquet(data: bytes) -> Iterator[dict[str, Any]]:
    import polars as pl

    try:
        return pl.read_parquet(io.BytesIO(data)).iter_rows(named=True)
    except pl.exceptions.PolarsError as error:
        raise ConfigurationError(f"the input begins like Parquet but is damaged ({error}): correct it") from error
