"""Deterministic ids: the same cause has the same id in the stream, in replay and after a crash."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha1
from uuid import UUID

from models.events import Position

_NAMESPACE = UUID("6f0d7a3c-6f0b-5a55-9a35-1d2f8f2a7c11").bytes
_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
"""The digit that holds the two bits of the variant (RFC 9562, 4.1)."""


def _uuid5(name: str) -> str:
    h = sha1(_NAMESPACE + name.encode(), usedforsecurity=False).hexdigest()
    return f"{h[:8]}-{h[8:12]}-5{h[13:16]}-{_VARIANT[h[16]]}{h[17:20]}-{h[20:32]}"


def event_id(kind: str, key: str, source: Position, ordinal: int = 0) -> str:
    """UUIDv5 of kind, key, source topic-partition-offset and ordinal (design §5.3).

    Args:
        kind: The event's tag.
        key: The entity, for instance the session id.
        source: The input record that caused the event.
        ordinal: Counts events of one kind, key and source.
    """
    return _uuid5(f"{kind}\x1f{key}\x1f{source.topic}\x1f{source.partition}\x1f{source.offset}\x1f{ordinal}")


def sortable_id(at: datetime, *parts: str) -> str:
    """Name that sorts by event time (ID Generation): milliseconds in base 36, eight digits of `named_id`.

    Where the source takes a random suffix this one is deterministic: what has the same parts has the same suffix.

    >>> sortable_id(datetime(2026, 1, 1, tzinfo=UTC), "project:a/b", "decision", "use sqlite")[:9]
    'mjuohs00-'
    """
    milliseconds = max(0, (at - _EPOCH) // _MILLISECOND)
    return f"{_base36(milliseconds):0>8}-{named_id(*parts)[:8]}"


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits


def named_id(*parts: str) -> str:
    """UUIDv5 of the given parts, for what is named by content (an alert's life, a vector point)."""
    return _uuid5("\x1f".join(parts))
