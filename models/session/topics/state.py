"""State of a session's topics, in parts whose names begin with `t` (topic memory, Data structures).

| part | content | written |
|---|---|---|
| `ti` | which topics there are, and the active one | when that changes |
| `t3` | topic 3: title, times, counts | by a message of it |
| `tm3.0` … | its messages at hand, one each | by its message |
| `te3` | its embedding (`topic_vectors`) | by a user's message of it |
| `ty3` | its summary | by a compaction |
| `tr3` | which turns it released, in runs | by a compaction |
| `tp3.0` … | its packed history, in blocks (`packing`) | by a compaction, or never again |

So a turn writes its message and its topic's counts, never the history. A block that is unpacked is marked as at hand
and stays where it is, to be read when it is asked for: unpacking writes nothing, and packing it again costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, Protocol

from msgspec import Struct

from models.events import TopicCause, TopicCompaction
from models.session.topics.packing import Codec, MessageEntry
from models.state.buffer import BufferedTurn

PREFIX = "t"
"""Every part of topic memory; no other part's name begins so. They outlive the session's end."""


RUNS: Final = 64
"""Of the turns that a topic released, the latest; the archive knows the others."""


class TopicIndex(Struct, array_like=True):
    """Which topics there are; `active` is -1 without any."""

    slots: list[int] = []
    """In the order of their creation."""
    active: int = -1


class BlockRef(Struct, array_like=True, gc=False):
    """A block of a topic's history."""

    number: int
    messages: int
    json_bytes: int
    packed_bytes: int
    at_hand: bool = False
    """Unpacked: its messages count among those at hand."""


class TopicState(Struct, array_like=True):
    """One topic without its messages. Sizes are bounded by the policy."""

    topic_id: str
    title: str
    created_at: datetime
    last_active_at: datetime
    importance: float
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
    recalled: int = 0
    """Messages of the user's other sessions."""
    told_messages: int = 0
    """Messages and accesses that the user's memory knows of."""
    told_accesses: int = 0

    @property
    def packed(self) -> list[BlockRef]:
        """Blocks that are packed, oldest first."""
        return [block for block in self.blocks if not block.at_hand]

    @property
    def unpacked(self) -> list[BlockRef]:
        """Blocks that were unpacked and are at hand."""
        return [block for block in self.blocks if block.at_hand]

    @property
    def active_messages(self) -> int:
        """Messages at hand."""
        return len(self.slots) + sum([block.messages for block in self.blocks if block.at_hand])

    @property
    def away(self) -> int:
        """Messages that are not at hand: the summary stands for them."""
        return self.message_count - self.active_messages


class PackedBlock(Struct, frozen=True, array_like=True, gc=False):
    """A part `tp`: the packed text and, beside it, which turns it holds."""

    turns: list[int]
    codec: Codec
    data: bytes
    checks: list[int]
    """Of each message (`packing.check_of`), to tell whole ones from damaged ones …"""
    data_check: int
    """… where the whole text is not what it was: its CRC-32."""


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


class TopicChange(Struct, frozen=True):
    """One change, told with the topic as it is at that moment."""

    slot: int
    cause: TopicCause
    detail: str = ""
    kept: bool = True
    compaction: TopicCompaction | None = None
    packed: Sequence[BufferedTurn] = ()
    """Messages that the compaction packed …"""
    before: str = ""
    """… and the summary before it."""


class Announcer(Protocol):
    """Who is told, at the moment it happens."""

    def topic(self, change: TopicChange) -> None:
        """A topic changed."""
        ...

    def damage(self, damage: Damage) -> None:
        """Something of a packed history could not be read."""
        ...


def runs_of(turns: Iterable[int]) -> list[int]:
    """Turn numbers as runs: first and last number of each.

    >>> runs_of([3, 1, 2, 9])
    [1, 3, 9, 9]
    """
    return joined([number for turn in turns for number in (turn, turn)], [])


def joined(runs: Sequence[int], others: Sequence[int]) -> list[int]:
    """Runs of numbers, with others; the last `RUNS` of them.

    >>> joined([0, 3, 8, 8], [7, 7, 4, 4, 12, 12])
    [0, 4, 7, 8, 12, 12]
    """
    found: list[int] = []
    both = [*runs, *others]
    for first, last in sorted(zip(both[::2], both[1::2], strict=True)):
        if found and first <= found[-1] + 1:
            found[-1] = max(found[-1], last)
        else:
            found += (first, last)
    return found[-2 * RUNS :]


def in_time_order(messages: Iterable[BufferedTurn]) -> list[BufferedTurn]:
    """Messages by event time; of equal times by turn number."""
    return sorted(messages, key=lambda message: (message.timestamp, message.turn))


def entry_of(message: BufferedTurn) -> MessageEntry:
    """The message as the source packs it."""
    return MessageEntry(message.role, message.content, message.timestamp.timestamp())
