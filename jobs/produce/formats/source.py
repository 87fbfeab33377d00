"""An input of `turntide produce`, opened: what it is and what is in it."""

from __future__ import annotations

import select
from collections.abc import Iterator
from typing import BinaryIO

import msgspec
from msgspec import Struct

from jobs.produce.formats import FORMATS, Documents, Filling, InputConversation, Malformed, conversations, detect
from models.errors import ConfigurationError
from models.events import SessionEnded
from models.wire.codec import UNDECODABLE


class RawLine(Struct, frozen=True):
    """Line that is sent as it stands, keyed by its session id where that can be read."""

    line: int
    key: bytes | None
    value: bytes


Item = InputConversation | RawLine | Malformed
"""What an input consists of."""


class InputSource:
    """An opened input. Its first line is read at once, to tell the format.

    Attributes:
        format_name: What is read, `raw` for lines as they stand.
        items: What is to be sent, once.
    """

    def __init__(
        self,
        stream: BinaryIO,
        filling: Filling,
        *,
        format_name: str | None = None,
        end_sessions: bool | None = None,
        by_time: bool | None = None,
        raw: bool = False,
    ) -> None:
        """Open a stream.

        Args:
            stream: What is read.
            filling: What stands in for missing values.
            format_name: Format, or None to detect it.
            end_sessions: Whether each conversation is followed by its end; None: for formats of whole transcripts.
            by_time: Whether conversations are sorted by their beginnings; None: as the format has it.
            raw: Whether lines are sent as they stand.

        Raises:
            ConfigurationError: The format cannot be told, or does not go with the options.
        """
        self._stream = stream
        self._documents = Documents(stream)
        self.format_name = "raw"
        self.items: Iterator[Item] = iter(())
        if raw:
            self.items = self._raw_lines()
            return
        first = self._documents.first()
        if not first:
            self.format_name = format_name or "empty"
            return
        self.format_name = format_name or detect(first)
        form = FORMATS[self.format_name]
        if end_sessions and not form.transcripts:
            raise ConfigurationError(
                f"--end-sessions excludes --format {self.format_name}, which has its own session_ended events"
            )
        read = conversations(form, self._documents, filling, by_time=form.by_time if by_time is None else by_time)
        self.items = map(_ended, read) if (form.transcripts if end_sessions is None else end_sessions) else read

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, for progress."""
        return self._documents.bytes_read

    def ready(self) -> bool:
        """Check that the next read returns at once: always for a file, for a pipe when it holds data."""
        return self._stream.seekable() or bool(select.select([self._stream], [], [], 0)[0])

    def _raw_lines(self) -> Iterator[RawLine]:
        """Lines without their line ends; blank ones too."""
        for number, line in enumerate(self._stream, start=1):
            self._documents.bytes_read += len(line)
            value = line.rstrip(b"\r\n")
            yield RawLine(number, _key_of(value), value)


class _SessionLine(Struct):
    session_id: str


_line = msgspec.json.Decoder(_SessionLine)


def _key_of(line: bytes) -> bytes | None:
    try:
        return _line.decode(line).session_id.encode()
    except (*UNDECODABLE, UnicodeError):
        return None


def _ended(item: InputConversation | Malformed) -> InputConversation | Malformed:
    if isinstance(item, Malformed):
        return item
    last = item.events[-1]
    end = SessionEnded(
        session_id=last.session_id, app_id=last.app_id, timestamp=last.timestamp, reason="end of transcript"
    )
    return InputConversation(item.line, [*item.events, end])
