"""The packed text itself (topic memory, Compression format): anyone can unpack it, damage costs what is damaged."""

import base64
import gzip
import json
import random
import zlib

import pytest

from models.events import Role
from models.session.topics.packing import DICTIONARY, MessageEntry, check_of, json_bytes, pack, unpack

HELLO = [MessageEntry(Role.USER, "Hello", 1234567890.0), MessageEntry(Role.ASSISTANT, "Hi!", 1234567891.0)]
"""The source's example."""
WORDS = ["boat", "sails", "harbour", "wind", "anchor", "rope", "storm", "tide", "crew", "chart", "lantern", "mast"]


def talk(messages: int) -> list[MessageEntry]:
    """Messages that are no repetition of each other."""
    chosen = random.Random(4)
    return [
        MessageEntry(
            Role.ASSISTANT if n % 2 else Role.USER,
            " ".join(chosen.choices(WORDS, k=40)) + f" and {chosen.random()}",
            1_767_225_600.0 + 61 * n + 0.25,
        )
        for n in range(messages)
    ]


@pytest.mark.behaviour("topic-08")
def test_gzip_unpacks_with_what_everyone_has() -> None:
    """Base64, gzip and JSON give the source's fields, no more and no less, in their order."""
    unpacked = json.loads(gzip.decompress(base64.b64decode(pack(HELLO), validate=True)))

    assert [
        {"role": "user", "content": "Hello", "timestamp": 1234567890},
        {"role": "assistant", "content": "Hi!", "timestamp": 1234567891},
    ] == unpacked
    assert ["role", "content", "timestamp"] == list(unpacked[0])
    assert pack(HELLO).decode("ascii").startswith("H4sI")


def test_what_the_seed_wrote_is_read() -> None:
    """Python's own JSON has blanks and whole numbers; other fields are passed over."""
    text = json.dumps([{"role": "user", "content": "Grüße ⛵", "timestamp": 1234567890, "language": "de"}])
    packed = base64.b64encode(gzip.compress(text.encode()))

    assert ([MessageEntry(Role.USER, "Grüße ⛵", 1234567890.0)], "") == (unpack(packed).messages, unpack(packed).damage)


def test_deflate_is_raw_deflate_with_the_shared_dictionary() -> None:
    """Unpacked by zlib alone, and never longer than gzip's."""
    for messages in (HELLO, talk(8), talk(50)):
        packed = pack(messages, "deflate")
        stream = zlib.decompressobj(-15, zdict=DICTIONARY)

        assert json_bytes(messages) == stream.decompress(packed) + stream.flush()
        assert len(packed) < len(pack(messages))


def test_dictionary_never_changes() -> None:
    """What is packed can be read with it alone: its text is a data file that must stay as it is."""
    assert (3_532, 3_836_603_590) == (len(DICTIONARY), zlib.crc32(DICTIONARY))


def test_truncated_base64_is_read_to_its_last_group() -> None:
    """Whatever the number of characters left over, no message before the cut is lost."""
    messages = talk(40)
    packed = pack(messages)
    lengths = [len(unpack(packed[: len(packed) // 2 - n]).messages) for n in range(4)]

    assert max(lengths) - min(lengths) <= 1
    assert min(lengths) > 10


def test_foreign_characters_end_the_base64() -> None:
    """What follows them cannot be trusted to be in place."""
    messages = talk(40)
    packed = pack(messages)
    middle = len(packed) // 2
    found = unpack(packed[:middle] + b"\n?" + packed[middle:])

    assert messages[: len(found.messages)] == found.messages
    assert 10 < len(found.messages) < 40
    assert "no base64" in found.damage


def _packed(text: str | bytes) -> bytes:
    return base64.b64encode(gzip.compress(text if isinstance(text, bytes) else text.encode()))


GOOD = '{"role":"user","content":"Hello","timestamp":1}'
WRONG = {
    "no gzip": base64.b64encode(b"not compressed at all"),
    "no base64": b"\xff\xfe\x00",
    "nothing": b"",
    "no array": _packed('{"role":"user"}'),
    "no JSON": _packed("Hello"),
    "array of numbers": _packed("[1,2,3]"),
    "no UTF-8": _packed(b'[{"role":"user","content":"\xff\xff","timestamp":1}]'),
    "ten thousand brackets": _packed("[" * 10_000),
}
AFTER_ONE = {
    "a role that is none": '{"role":"captain","content":"Hi","timestamp":2}',
    "a time of text": '{"role":"user","content":"Hi","timestamp":"noon"}',
    "a time after the year 9999": '{"role":"user","content":"Hi","timestamp":1e300}',
    "a time before the year 1": '{"role":"user","content":"Hi","timestamp":-1e12}',
    "a time that is no number": '{"role":"user","content":"Hi","timestamp":NaN}',
    "no content": '{"role":"user","timestamp":2}',
    "content that is null": '{"role":"user","content":null,"timestamp":2}',
    "a broken string": '{"role":"user","content":"Hi',
    "deep nesting": '{"role":' + "[" * 100_000,
}


@pytest.mark.parametrize("packed", WRONG.values(), ids=WRONG.keys())
def test_nothing_whole_is_no_message(packed: bytes) -> None:
    """It says what is wrong, without any of the text, and does not raise."""
    found = unpack(packed)

    assert ([], True) == (found.messages, bool(found.damage))


@pytest.mark.parametrize("second", AFTER_ONE.values(), ids=AFTER_ONE.keys())
def test_messages_before_a_wrong_one_are_kept(second: str) -> None:
    """Field by field: from the first message that is not one, nothing is believed."""
    found = unpack(_packed(f"[{GOOD},{second},{GOOD}]"))

    assert [MessageEntry(Role.USER, "Hello", 1.0)] == found.messages
    assert "from number 1 on" in found.damage


def test_checks_tell_messages_apart() -> None:
    """A letter, the speaker or the time: each changes the check."""
    (hello, _) = HELLO
    others = [
        MessageEntry(Role.USER, "Hellp", hello.timestamp),
        MessageEntry(Role.TOOL, hello.content, hello.timestamp),
        MessageEntry(Role.USER, hello.content, hello.timestamp + 1e-6),
    ]

    assert 4 == len({check_of(message) for message in [hello, *others]})


@pytest.mark.behaviour("topic-09")
def test_packing_saves_what_the_seed_says() -> None:
    """Words that recur, as in a conversation: 50 messages are at least 60 % smaller, base64 included."""
    raw, packed = json_bytes(talk(50)), pack(talk(50))

    assert len(packed) / len(raw) < 0.4
