"""Deterministic ids: the same cause has the same id in the stream, in replay and after a crash."""

from __future__ import annotations

from hashlib import sha1
from uuid import UUID

from models.events import Position

_NAMESPACE = UUID("6f0d7a3c-6f0b-5a55-9a35-1d2f8f2a7c11").bytes


def _uuid5(name: str) -> str:
    digest = bytearray(sha1(_NAMESPACE + name.encode(), usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    h = digest.hex()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def event_id(kind: str, key: str, source: Position, ordinal: int = 0) -> str:
    """UUIDv5 of kind, key, source topic-partition-offset and ordinal (design §5.3).

    Args:
        kind: The event's tag.
        key: The entity, for instance the session id.
        source: The input record that caused the event.
        ordinal: Counts events of one kind, key and source.
    """
    return _uuid5(f"{kind}\x1f{key}\x1f{source.topic}\x1f{source.partition}\x1f{source.offset}\x1f{ordinal}")


def named_id(*parts: str) -> str:
    """UUIDv5 of the given parts, for what is named by content (an alert's life, a vector point)."""
    return _uuid5("\x1f".join(parts))
