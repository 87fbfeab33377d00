"""What is kept of a session's topics, in parts whose names begin with `t` (seed 001, Data structures).

| part | content | written |
|---|---|---|
| `ti` | which topics there are, and the active one | when that changes |
| `t3` | topic 3: title, times, counts, embedding | by a message of it |
| `tm3.0` … | its messages at hand, one each | by its message |
| `ty3` | its summary | by a compaction |
| `tp3.0` … | its packed history, in blocks (`packing`) | by a compaction, or never again |
| `th3.0` … | a block that was unpacked | by the unpacking |

So a turn writes its message and its topic's counts, never the history.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from models.memory.buffer import BufferedTurn
from models.memory.packing import Codec, MessageEntry

PREFIX = "t"
"""Every part of topic memory; no other part's name begins so. They outlive the session's end."""


class TopicIndex(Struct, array_like=True):
    """Which topics there are; `active` is -1 without any."""

    slots: list[int] = []
    """In the order of their creation."""
    active: int = -1


class BlockRef(Struct, array_like=True, gc=False):
    """A block of a topic's history; packed, or unpacked and at hand."""

    number: int
    messages: int
    json_bytes: int
    packed_bytes: int
    """0 when unpacked."""


class Topic(Struct, array_like=True):
    """One topic without its messages. Sizes are bounded by the policy."""

    topic_id: str
    title: str
    created_at: datetime
    last_active_at: datetime
    importance: float
    embedding: bytes = b""
    """Running mean of its user messages' vectors, int8, `(256,)`; empty before the first."""
    weight: int = 0
    """User messages in the mean, up to its memory."""
    message_count: int = 0
    """Ever, those released included."""
    access_count: int = 0
    compact_above: int = 0
    """Messages at hand before the next compaction."""
    slots: dict[int, int] = {}
    """Turn number to part number, of messages at hand that came since the last compaction or stayed in it."""
    blocks: list[BlockRef] = []
    released: int = 0
    """Messages that left the history for the archive."""
    tags: list[str] = []

    @property
    def packed(self) -> list[BlockRef]:
        """Blocks that are packed, oldest first."""
        return [block for block in self.blocks if block.packed_bytes]

    @property
    def unpacked(self) -> list[BlockRef]:
        """Blocks that were unpacked and are at hand."""
        return [block for block in self.blocks if not block.packed_bytes]

    @property
    def active_messages(self) -> int:
        """Messages at hand."""
        return len(self.slots) + sum([block.messages for block in self.blocks if not block.packed_bytes])

    @property
    def packed_messages(self) -> int:
        """Messages in packed blocks."""
        return sum([block.messages for block in self.blocks if block.packed_bytes])


class PackedBlock(Struct, frozen=True, array_like=True, gc=False):
    """A part `tp`: the packed text and, beside it, which turns it holds."""

    turns: list[int]
    codec: Codec
    data: bytes
    checks: list[int]
    """Of each message (`packing.check_of`)."""


class TopicSummary(Struct, frozen=True, array_like=True, gc=False):
    """A part `ty`."""

    text: str
    summarised_by: str


class Damage(Struct, frozen=True, gc=False):
    """A packed block of which something could not be read."""

    turns: list[int]
    """Lost from the topic; the archive has them."""
    detail: str
    data: bytes


def in_time_order(messages: Iterable[BufferedTurn]) -> list[BufferedTurn]:
    """Messages by event time; of equal times by turn number."""
    return sorted(messages, key=lambda message: (message.timestamp, message.turn))


def entry_of(message: BufferedTurn) -> MessageEntry:
    """The message as the seed packs it."""
    return MessageEntry(message.role, message.content, message.timestamp.timestamp())
