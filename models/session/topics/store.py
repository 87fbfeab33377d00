"""Store of a session's topics: working copies over the parts that `topic_state` describes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from zlib import crc32

import msgspec

from models.policy.topic import TopicPolicy
from models.session.topics.packing import Codec, MessageEntry, check_of, json_bytes, pack, unpack
from models.session.topics.state import (
    BlockRef,
    Damage,
    PackedBlock,
    TopicIndex,
    TopicState,
    TopicSummary,
    entry_of,
    in_time_order,
    joined,
    runs_of,
)
from models.state.buffer import BufferedTurn, decode_turn
from models.state.parts import Parts
from models.text.words import utf8_bytes

_INDEX = "ti"
_TOPIC_BYTES = 2_048
"""A topic's part without messages, blocks and tags: its title has 400 characters at the most."""
_SLOT_BYTES = 24
"""What a message or block adds to its topic's part."""

_SIZED = re.compile(r"t(p?)\d+(?:\.\d+)?")
"""Parts that have packed text, or its size."""

_encode = msgspec.msgpack.Encoder().encode
_decode_index = msgspec.msgpack.Decoder(TopicIndex).decode
_decode_topic = msgspec.msgpack.Decoder(TopicState).decode
_decode_block = msgspec.msgpack.Decoder(PackedBlock).decode
_decode_runs = msgspec.msgpack.Decoder(list[int]).decode
_decode_summary = msgspec.msgpack.Decoder(TopicSummary).decode


class TopicStore:
    """Topics of one session as working copies over their parts; `flush` writes what was changed."""

    def __init__(self, parts: Parts, policy: TopicPolicy, risky: tuple[str, ...] = ()) -> None:
        self.policy = policy
        self.risky = risky
        self._parts = parts
        data = parts.get(_INDEX)
        self.index = _decode_index(data) if data is not None else TopicIndex()
        self._topics: dict[int, TopicState] = {}
        self._touched: set[int] = set()
        self._index_touched = False
        self._written_bytes = 0
        self._written_parts = 0

    # --- topics

    def topic(self, slot: int) -> TopicState:
        """A topic; change it only between `touch` and the next `flush`."""
        topic = self._topics.get(slot)
        if topic is None:
            topic = self._topics[slot] = _decode_topic(self._read(f"t{slot}"))
        return topic

    def topics(self) -> Iterator[tuple[int, TopicState]]:
        """Every topic and its slot, in the order of creation."""
        for slot in self.index.slots:
            yield slot, self.topic(slot)

    def touch(self, slot: int) -> TopicState:
        """A topic that is about to change."""
        topic = self.topic(slot)
        if slot not in self._touched:
            self._touched.add(slot)
            self._written_parts += 1
            self._written_bytes += _TOPIC_BYTES + _SLOT_BYTES * (len(topic.slots) + len(topic.blocks))
            self._written_bytes += sum([utf8_bytes(tag) for tag in topic.tags])
        return topic

    def add(self, topic: TopicState) -> int:
        """Keep a new topic; gives its slot."""
        slot = next(n for n in range(len(self.index.slots) + 1) if n not in self.index.slots)
        self.index.slots.append(slot)
        self._topics[slot] = topic
        self._index_touched = True
        self.touch(slot)
        return slot

    def activate(self, slot: int) -> None:
        """Make a topic the active one."""
        self.index.active = slot
        self._index_touched = True

    def remove(self, slot: int) -> None:
        """Forget a topic and everything of it."""
        topic = self.topic(slot)
        for number in topic.slots.values():
            self._drop(f"tm{slot}.{number}")
        for block in topic.blocks:
            self._drop(f"tp{slot}.{block.number}")
        for name in (f"t{slot}", f"te{slot}", f"ty{slot}", f"tr{slot}"):
            self._drop(name)
        self.index.slots.remove(slot)
        self._index_touched = True
        del self._topics[slot]
        self._touched.discard(slot)

    def flush(self) -> None:
        """Write changed topics into the parts."""
        for slot in sorted(self._touched):
            self._parts.put(f"t{slot}", _encode(self._topics[slot]))
        self._touched.clear()
        if self._index_touched:
            self._parts.put(_INDEX, _encode(self.index))
            self._index_touched = False

    def take_written(self) -> tuple[int, int]:
        """Bytes and parts written since the last call; topics, which wait for `flush`, by an upper estimate."""
        written = self._written_bytes, self._written_parts
        self._written_bytes = self._written_parts = 0
        return written

    # --- messages at hand

    def put_message(self, slot: int, turn: int, encoded: bytes) -> None:
        """Keep a message at hand."""
        topic = self.touch(slot)
        used = topic.slots.values()
        number = topic.slots.get(turn, -1)
        if number < 0:
            number = len(used) if max(used, default=-1) < len(used) else min(set(range(len(used))).difference(used))
        topic.slots[turn] = number
        self._put(f"tm{slot}.{number}", encoded)

    def drop_message(self, slot: int, turn: int) -> None:
        """Let a message go that has been packed."""
        self._drop(f"tm{slot}.{self.touch(slot).slots.pop(turn)}")

    def latest_messages(self, slot: int) -> list[BufferedTurn]:
        """Messages that came since the last compaction and those it kept, in order of time."""
        numbers = self.topic(slot).slots.values()
        return in_time_order(decode_turn(self._read(f"tm{slot}.{number}")) for number in numbers)

    def active_messages(self, slot: int) -> list[BufferedTurn]:
        """Messages at hand, in order of time."""
        unpacked = [message for block in self.topic(slot).unpacked for message in self.read_block(slot, block)[0]]
        return in_time_order([*self.latest_messages(slot), *unpacked])

    def turns(self, slot: int) -> list[int]:
        """Turn numbers of every message of a topic that is here, at hand or packed."""
        topic = self.topic(slot)
        return [*topic.slots, *(turn for block in topic.blocks for turn in self.block_turns(slot, block))]

    def active_turns(self, slot: int) -> list[int]:
        """Turn numbers of the messages at hand, in order of number."""
        topic = self.topic(slot)
        unpacked = [turn for block in topic.unpacked for turn in self.block_turns(slot, block)]
        return sorted([*topic.slots, *unpacked])

    # --- history

    def packed_block(self, slot: int, block: BlockRef) -> PackedBlock:
        """A block as it is kept."""
        return _decode_block(self._read(f"tp{slot}.{block.number}"))

    def block_turns(self, slot: int, block: BlockRef) -> list[int]:
        """Turn numbers of a block."""
        return self.packed_block(slot, block).turns

    def read_block(self, slot: int, block: BlockRef) -> tuple[list[BufferedTurn], Damage | None]:
        """Messages of a block; of a damaged one those that are whole."""
        packed = self.packed_block(slot, block)
        entries, damage = _whole_entries(packed)
        messages = [
            BufferedTurn(turn, entry.role, entry.content, datetime.fromtimestamp(entry.timestamp, UTC), None)
            for turn, entry in entries
        ]
        return messages, damage

    def pack_block(self, slot: int, messages: Sequence[BufferedTurn], codec: Codec, json_bytes: int) -> BlockRef:
        """Pack messages as the newest block."""
        topic = self.touch(slot)
        number = max([block.number for block in topic.blocks], default=-1) + 1
        block = BlockRef(number, len(messages), json_bytes, 0)
        topic.blocks.append(block)
        self._write_block(slot, block, messages, codec)
        return block

    def unpack_block(self, slot: int, block: BlockRef) -> Damage | None:
        """Bring a block's messages to hand; what is damaged of it is lost to the topic."""
        self.touch(slot)
        packed = self.packed_block(slot, block)
        block.at_hand = True
        if _is_whole(packed):
            return None
        _, damage = _whole_entries(packed)
        if damage is None:
            return None
        self.release(slot, damage.turns)
        whole, _ = self.read_block(slot, block)
        if whole:
            block.messages = len(whole)
            self._write_block(slot, block, whole, packed.codec)
        else:
            self.remove_block(slot, block)
        return damage

    def runs(self, slot: int) -> list[int]:
        """Turns that were released: first and last number of each run."""
        data = self._parts.get(f"tr{slot}")
        return [] if data is None else _decode_runs(data)

    def put_runs(self, slot: int, runs: Sequence[int]) -> None:
        """Add to them."""
        if runs:
            self._put(f"tr{slot}", _encode(joined(self.runs(slot), runs)))

    def release(self, slot: int, turns: Sequence[int]) -> None:
        """Messages left for index and archive."""
        self.touch(slot).released += len(turns)
        self.put_runs(slot, runs_of(turns))

    def remove_block(self, slot: int, block: BlockRef) -> None:
        """Let a block go."""
        self._drop(f"tp{slot}.{block.number}")
        self.touch(slot).blocks.remove(block)

    def move_block(self, source: int, block: BlockRef, target: int) -> None:
        """Give a block to another topic."""
        blocks = self.touch(target).blocks
        number = max([each.number for each in blocks], default=-1) + 1
        self._put(f"tp{target}.{number}", self._read(f"tp{source}.{block.number}"))
        self.remove_block(source, block)
        blocks.append(msgspec.structs.replace(block, number=number))

    def _write_block(self, slot: int, block: BlockRef, messages: Sequence[BufferedTurn], codec: Codec) -> None:
        entries = [entry_of(message) for message in messages]
        turns, checks = [message.turn for message in messages], [check_of(entry) for entry in entries]
        data = pack(entries, codec)
        packed = PackedBlock(turns, codec, data, checks, crc32(data))
        block.packed_bytes = len(packed.data)
        self._put(f"tp{slot}.{block.number}", _encode(packed))

    # --- embedding and summary

    def embedding(self, slot: int) -> bytes | None:
        """As `topic_vectors` keeps it; None before the first user message."""
        return self._parts.get(f"te{slot}")

    def put_embedding(self, slot: int, embedding: bytes) -> None:
        """Replace the embedding."""
        self._put(f"te{slot}", embedding)

    def summary(self, slot: int) -> TopicSummary | None:
        """What stands for the packed messages; None before the first compaction."""
        data = self._parts.get(f"ty{slot}")
        return None if data is None else _decode_summary(data)

    def put_summary(self, slot: int, summary: TopicSummary) -> None:
        """Replace the summary."""
        self._put(f"ty{slot}", _encode(summary))

    # --- parts

    def _put(self, name: str, value: bytes) -> None:
        self._parts.put(name, value)
        self._written_bytes += len(value) + _SLOT_BYTES
        self._written_parts += 1

    def _drop(self, name: str) -> None:
        self._parts.drop(name)
        self._written_parts += 1

    def _read(self, name: str) -> bytes:
        data = self._parts.get(name)
        assert data is not None, "the parts of a session are written together"  # noqa: S101
        return data


def without_packing(part: str, value: bytes) -> bytes:
    """What a part of a session says, whatever release of libzstd or zlib packed it: its messages unpacked, no sizes.

    A part of anything else, or that cannot be read, stays as it is.
    """
    if (found := _SIZED.fullmatch(part)) is None:
        return value
    try:
        if not found[1]:
            topic = _decode_topic(value)
            topic.blocks = [msgspec.structs.replace(block, packed_bytes=0) for block in topic.blocks]
            return _encode(topic)
        block = _decode_block(value)
    except msgspec.MsgspecError:
        return value
    entries, damage = _whole_entries(block)
    said = json_bytes([entry for _, entry in entries])
    return value if damage else _encode(msgspec.structs.replace(block, data=said, data_check=0))


def _is_whole(packed: PackedBlock) -> bool:
    """Whether a block's text is what was packed, without unpacking it."""
    return crc32(packed.data) == packed.data_check


def _whole_entries(packed: PackedBlock) -> tuple[list[tuple[int, MessageEntry]], Damage | None]:
    """Messages of a block that are what was packed, each with its turn."""
    unpacked = unpack(packed.data, packed.codec)
    if _is_whole(packed) and len(unpacked.messages) == len(packed.turns):
        return list(zip(packed.turns, unpacked.messages, strict=True)), None
    whole = [
        (turn, entry)
        for turn, entry, check in zip(packed.turns, unpacked.messages, packed.checks, strict=False)
        if check_of(entry) == check
    ]
    if len(whole) == len(packed.turns):
        return whole, None
    found = {turn for turn, _ in whole}
    lost = [turn for turn in packed.turns if turn not in found]
    return whole, Damage(lost, unpacked.damage or "messages are not what was packed", packed.data)
