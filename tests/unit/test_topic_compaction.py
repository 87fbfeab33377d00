"""Compaction of a topic (topic memory, §2), packed topics unpacked on return, and histories that cannot be read."""

import base64
import gzip
import json
from collections.abc import Callable

import msgspec
import pytest

from models.events import TopicChanged, TopicCompaction
from models.session.fold import SessionState
from models.session.topics.packing import MessageEntry, json_bytes
from models.session.topics.state import BlockRef, PackedBlock
from models.text.words import estimate_tokens
from tests.support.fields import assert_fields
from tests.support.topic_driver import Talk, causes, messages_of

SAILS = "Which sails does the boat need for a storm?"
ROPES = "How long must the ropes of an anchor be?"


def compaction(change: TopicChanged) -> TopicCompaction:
    """The lineage, which must be there."""
    assert change.compaction is not None
    return change.compaction


def blocks(talk: Talk) -> list[BlockRef]:
    """Packed blocks of the active topic."""
    return talk.active.packed


@pytest.mark.behaviour("topic-05", "topic-16")
def test_thirteenth_message_packs_nine() -> None:
    """Twelve messages lie at hand; the next packs all but the last four (source: 12 and 4)."""
    talk = Talk()
    talk.discuss(0, 12)
    assert (12, []) == (talk.active.active_messages, talk.caused("compacted"))
    (change,) = talk.discuss(0, 1)

    assert ("compacted", [9, 10, 11, 12], list(range(9))) == (change.cause, change.active_turns, change.packed_turns)
    assert_fields(change, message_count=13, released_messages=0)
    assert (4, [9]) == (talk.active.active_messages, [block.messages for block in talk.active.packed])


@pytest.mark.behaviour("topic-08")
@pytest.mark.parametrize("codec", ["zstd", "gzip", "deflate"])
def test_packed_again_it_is_merged_with_what_was_packed(codec: str) -> None:
    """Nine, then nine more: one block of eighteen, in order, by any codec and over a restart."""
    talk = Talk(codec=codec)
    talk.discuss(0, 13)
    talk.store()
    talk.discuss(0, 9)
    (block,) = blocks(talk)
    history = talk.history("Message 0 of it.")

    assert (list(range(18)), 18) == ([message.turn for message in history], block.messages)
    assert [f"Message {n} of it." for n in range(18)] == [message.content for message in history]
    assert [codec] * 2 == [compaction(change).codec for change in talk.caused("compacted")]


@pytest.mark.parametrize("codec", ["zstd", "gzip", "deflate"])
def test_lineage_adds_up(codec: str) -> None:
    """Turns, tokens, bytes, ratio, probes and loss are those of the messages and of the text that was packed."""
    talk = Talk(codec=codec)
    for n in range(13):
        talk.ask(0, f"{SAILS if n % 2 else ROPES} That was question {n}.")
    change = talk.caused("compacted")[0]
    made = compaction(change)
    history = talk.history(f"{ROPES} That was question 0.")
    entries = [MessageEntry(m.role, m.content, m.timestamp.timestamp()) for m in history]
    packed = talk.topics.store.packed_block(0, blocks(talk)[0])

    assert (list(range(9)), "extractive", []) == (made.turns, made.summarised_by, made.released_turns)
    assert (len(json_bytes(entries)), len(packed.data)) == (made.bytes_before, made.bytes_after)
    assert (made.bytes_after / made.bytes_before, change.packed_bytes) == (made.ratio, made.bytes_after)
    assert sum(estimate_tokens(entry.content) for entry in entries) == made.tokens_before
    assert change.summary is not None
    assert estimate_tokens(change.summary) == made.tokens_after < made.tokens_before
    assert (9, 1 - made.probes_found / made.probes) == (made.probes, made.loss)
    assert 0 < made.probes_found <= 9


@pytest.mark.behaviour("topic-29")
def test_summary_is_updated_not_made_anew() -> None:
    """What the first summary says of packed messages is still there when more are packed, and it stays short."""
    talk = Talk(summary_sentences=2)
    talk.ask(0, "The lighthouse of Alexandria guided ships into the harbour by night.")
    for _ in range(12):
        talk.answer("Yes.")
    first = talk.caused("compacted")[0].summary
    talk.ask(0, "Which lighthouse guided ships into the harbour of Genoa by night?")
    for _ in range(8):
        talk.answer("Yes.")
    second = talk.caused("compacted")[1].summary

    assert first == "The lighthouse of Alexandria guided ships into the harbour by night."
    assert second == f"{first} Which lighthouse guided ships into the harbour of Genoa by night?"


@pytest.mark.behaviour("topic-15")
def test_history_beyond_its_bytes_is_released_oldest_first() -> None:
    """What leaves is named once, counted, and no longer in the state; the archive has it."""
    talk = Talk(history_bytes=1_024, block_messages=9)
    for n in range(13 + 9 * 9):
        talk.ask(0, f"{n} " + "".join(chr(97 + (7 * n * k + k * k) % 26) for k in range(300)))
    released = [turn for change in talk.caused("compacted") for turn in compaction(change).released_turns]
    kept = talk.history(talk.titles[0])

    assert released == list(range(len(released)))
    assert (len(released), kept[0].turn) == (talk.active.released, len(released))
    assert 0 < talk.changes[-1].packed_bytes <= 1_024 + max(block.packed_bytes for block in blocks(talk))
    assert talk.active.message_count == talk.active.active_messages + len(kept) + len(released)


FIRST = "Message 0 of it."


def long_topic(messages: int = 40, **topics: object) -> Talk:
    """A topic about matter 0, most of its messages packed, that has been left for matter 1."""
    talk = Talk(**topics)
    talk.discuss(0, messages)
    talk.ask(1, "another")
    return talk


@pytest.mark.behaviour("topic-15")
@pytest.mark.parametrize("codec", ["zstd", "gzip", "deflate"])
@pytest.mark.parametrize("restart", [False, True])
def test_return_unpacks_everything(codec: str, restart: bool) -> None:
    """All blocks, merged with what is at hand, by time; the packed history is cleared."""
    talk = long_topic(codec=codec)
    before = [block.messages for block in talk.topics.store.topic(0).packed]
    if restart:
        talk.store()
    left, unpacked = talk.ask(0)
    talk.store()

    assert ([32, 4], "left", "unpacked") == (before, left.cause, unpacked.cause)
    assert ([*range(40), 41], [], 0) == (unpacked.active_turns, unpacked.packed_turns, unpacked.packed_bytes)
    assert [*range(40), 41] == talk.at_hand(FIRST)
    assert [] == talk.active.packed


def packed(entries: object) -> bytes:
    """As the source packs it."""
    return base64.b64encode(gzip.compress(json.dumps(entries).encode()))


def with_third(**fields: object) -> Callable[[bytes], bytes]:
    """The third message with another field."""

    def change(data: bytes) -> bytes:
        entries: list[dict[str, object]] = json.loads(gzip.decompress(base64.b64decode(data)))
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


def test_reading_a_damaged_history_changes_nothing() -> None:
    """Whoever reads gets what is whole; the letter is written when the topic itself comes to it."""
    talk, _ = damaged(with_third(role="captain"))
    history = messages_of(talk.topics, 0)

    assert [f"Message {n} of it." for n in (0, 1, 9, 10, 11, 12)] == [message.content for message in history]
    assert ([], [9]) == (talk.damages, [block.messages for block in talk.topics.store.topic(0).packed])
