"""A packed history that cannot be read: the topic goes on with what is whole, the rest goes to the dead letters."""

import base64
import gzip
import json
from collections.abc import Callable

import msgspec
import pytest

from models.events import SegmentCompacted
from models.session.fold import SessionState
from models.session.topics.state import PackedBlock
from tests.support.fields import assert_fields
from tests.support.topic_driver import Talk, causes, messages_of


def packed(entries: object) -> bytes:
    """As the source packs it."""
    return base64.b64encode(gzip.compress(json.dumps(entries).encode()))


def entries_of(data: bytes) -> list[dict[str, object]]:
    """What is packed."""
    entries: list[dict[str, object]] = json.loads(gzip.decompress(base64.b64decode(data)))
    return entries


def with_third(**fields: object) -> Callable[[bytes], bytes]:
    """The third message with another field."""

    def change(data: bytes) -> bytes:
        entries = entries_of(data)
        entries[2] |= fields
        return packed(entries)

    return change


def not_gzip(data: bytes) -> bytes:
    """Nothing of it can be read; of which bytes else that holds is said in `test_topic_packing`."""
    return base64.b64encode(b"nothing" + base64.b64decode(data))


def damaged(damage: Callable[[bytes], bytes], messages: int = 13, **topics: object) -> tuple[Talk, bytes]:
    """A topic of 13 messages, nine of them packed, stored, with its packed text changed; and that text."""
    talk = Talk(**{"codec": "gzip"} | topics)
    talk.discuss(0, messages)
    talk.ask(1, "another")
    talk.store()
    block = msgspec.msgpack.decode(talk.stored["tp0.0"], type=PackedBlock)
    wrong = damage(block.data)
    talk.stored["tp0.0"] = msgspec.msgpack.encode(msgspec.structs.replace(block, data=wrong))
    talk.state = SessionState.load(talk.stored)
    return talk, wrong


def test_topic_goes_on_when_nothing_is_whole() -> None:
    """The messages at hand stay; nine are gone from the topic, counted and named, and the bytes are in one letter."""
    talk, wrong = damaged(not_gzip)
    left, unpacked = talk.ask(0)
    talk.store()
    (letter,) = talk.damages

    assert_fields(unpacked, cause="unpacked", active_turns=[9, 10, 11, 12, 14], packed_turns=[])
    assert "left" == left.cause
    assert (14, 9) == (unpacked.message_count, unpacked.released_messages)
    assert ("topics", "damaged_history", wrong, b"s") == (letter.stage, letter.reason, letter.value, letter.key)
    assert str(list(range(9))) in letter.detail
    assert [] == [part for part in talk.stored if part.startswith(("tp", "th"))]


@pytest.mark.parametrize("codec", ["gzip", "deflate"])
def test_truncated_text_gives_its_beginning(codec: str) -> None:
    """Half of the text, by either codec of deflate: the messages before the cut are kept, in order."""
    talk, _ = damaged(lambda data: data[: len(data) // 2], messages=31, codec=codec)
    unpacked = talk.ask(0)[-1]
    whole = len(unpacked.active_turns) - 5

    assert [*range(whole), *range(27, 31), 32] == unpacked.active_turns
    assert (27 - whole, 1) == (unpacked.released_messages, len(talk.damages))
    assert 0 < whole < 27
    assert [f"Message {n} of it." for n in range(whole)] == [
        message.content for message in talk.topics.store.active_messages(0)[:whole]
    ]


def test_a_truncated_frame_of_zstd_loses_its_block_alone() -> None:
    """It is one block of zstd's: nothing comes out before its end, so all of its messages are named as lost."""
    talk, wrong = damaged(lambda data: data[: len(data) // 2], messages=31, codec="zstd")
    unpacked = talk.ask(0)[-1]
    (letter,) = talk.damages

    assert ([*range(27, 31), 32], 27) == (unpacked.active_turns, unpacked.released_messages)
    assert (wrong, True) == (letter.value, "ends too early" in letter.detail)


def test_checksum_alone_costs_nothing() -> None:
    """All messages are what was packed: nothing is lost, so nothing is told."""
    talk, _ = damaged(lambda data: base64.b64encode(base64.b64decode(data)[:-8] + bytes(8)))
    unpacked = talk.ask(0)[-1]

    assert ([*range(13), 14], []) == (unpacked.active_turns, talk.damages)


def test_damage_is_found_by_a_compaction_too() -> None:
    """What is packed next is merged with the last block: it is read, and what is whole of it goes on."""
    talk, wrong = damaged(with_third(role="captain"))
    talk.state = None
    talk.state = SessionState.load(talk.stored)
    slot = talk.topics.store.index
    slot.active = 0  # The user never left: no return unpacks it.
    changes = talk.discuss(0, 9)
    (letter,) = talk.damages

    assert (["compacted"], wrong) == (causes(changes), letter.value)
    assert [0, 1, *range(9, 13), *range(14, 19)] == changes[0].packed_turns
    assert (7, 22) == (changes[0].released_messages, changes[0].message_count)
    assert changes[0].compaction is not None
    assert [*range(9, 13), *range(14, 19)] == changes[0].compaction.turns


def test_nothing_else_is_lost() -> None:
    """The session, its segments, the other topic and what comes next are as without the damage."""
    talk, _ = damaged(not_gzip)
    twin, _ = damaged(lambda data: data)
    for each in (talk, twin):
        each.ask(0)
        each.discuss(1, 20)
        each.end(minute=100)
        each.store()

    assert talk.profile == twin.profile
    assert [output for output in talk.outputs if isinstance(output, SegmentCompacted)] == [
        output for output in twin.outputs if isinstance(output, SegmentCompacted)
    ]
    for part in ("t1", "tp1.0", "ty1", "head"):
        assert talk.stored[part] == twin.stored[part]


def test_reading_a_damaged_history_changes_nothing() -> None:
    """Whoever reads gets what is whole; the letter is written when the topic itself comes to it."""
    talk, _ = damaged(with_third(role="captain"))
    history = messages_of(talk.topics, 0)

    assert [f"Message {n} of it." for n in (0, 1, 9, 10, 11, 12)] == [message.content for message in history]
    assert ([], 9) == (talk.damages, talk.topics.store.topic(0).packed_messages)
