"""The packed text itself (topic memory, Compression format): anyone can unpack it, damage costs what is damaged."""

import base64
import gzip
import json
import random
import zlib
from importlib.resources import files

import pytest
from msgspec.structs import astuple

from models.events import Role
from models.session.topics import packing
from models.session.topics.packing import DICTIONARY, MessageEntry, Unpacked, check_of, json_bytes, pack, unpack

HELLO = [MessageEntry(Role.USER, "Hello", 1234567890.0), MessageEntry(Role.ASSISTANT, "Hi!", 1234567891.0)]
"""The source's example."""
PACKED_BEFORE: dict[packing.Codec, str] = {
    "zstd": "28b52ffd0000fd000040366921312e307d5d07f041a80fd33d39d124019d41b0ed12a3ad4168b728",
    "deflate": "8bc62de501cc33f968a61a199b989a995b5812e3208f4c451cba0d81ba6301",
}
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
    """Base64, gzip and JSON give the source's fields, no more and no less, in their order.

    What the source wrote is read: Python's own JSON has blanks and whole numbers; other fields are passed over.
    """
    unpacked = json.loads(gzip.decompress(base64.b64decode(pack(HELLO), validate=True)))

    assert [
        {"role": "user", "content": "Hello", "timestamp": 1234567890},
        {"role": "assistant", "content": "Hi!", "timestamp": 1234567891},
    ] == unpacked
    assert ["role", "content", "timestamp"] == list(unpacked[0])
    assert pack(HELLO).decode("ascii").startswith("H4sI")
    text = json.dumps([{"role": "user", "content": "Grüße ⛵", "timestamp": 1234567890, "language": "de"}])
    read = unpack(base64.b64encode(gzip.compress(text.encode())))
    assert (read.messages, read.damage) == ([MessageEntry(Role.USER, "Grüße ⛵", 1234567890.0)], "")


def test_deflate_is_raw_deflate_with_the_shared_dictionary() -> None:
    """Unpacked by zlib alone, and never longer than gzip's."""
    for messages in (HELLO, talk(8), talk(50)):
        packed = pack(messages, "deflate")
        stream = zlib.decompressobj(-15, zdict=DICTIONARY)

        assert json_bytes(messages) == stream.decompress(packed) + stream.flush()
        assert len(packed) < len(pack(messages))


def test_dictionaries_never_change() -> None:
    """What is packed can be read with it alone: they are data files that must stay as they are."""
    trained = files("models.session.topics").joinpath("zstd.dict").read_bytes()

    assert (3_532, 3_836_603_590) == (len(DICTIONARY), zlib.crc32(DICTIONARY))
    assert (163_840, 1104406727) == (len(trained), zlib.crc32(trained))


@pytest.mark.parametrize("codec", PACKED_BEFORE)
def test_what_was_packed_once_is_read_for_ever(codec: packing.Codec) -> None:
    """The bytes as the first release with each codec wrote them: the source's example."""
    assert (HELLO, "") == astuple(unpack(bytes.fromhex(PACKED_BEFORE[codec]), codec))


def test_zstd_gives_the_same_bytes_whatever_it_packed_before() -> None:
    """One compressor serves all texts: what a worker packed earlier must leave nothing in it, or a replay differs."""
    texts = [talk(n) for n in (2, 8, 20, 40)]
    forth = [pack(text, "zstd") for text in texts]
    packing._zstd_compressor.cache_clear()
    back = [pack(text, "zstd") for text in reversed(texts)]

    assert forth == back[::-1]


def test_zstd_packs_with_its_dictionary_without_naming_it() -> None:
    """Standard frames, as `zstd -D zstd.dict -d` reads them, shorter than by any other codec."""
    messages = [MessageEntry(Role.USER, f"I would like to know how long it takes, {n}.", 1.75e9 + n) for n in range(20)]
    packed = pack(messages, "zstd")

    assert b"\x28\xb5\x2f\xfd" == packed[:4]
    assert 0 == packed[4] & 3  # no id of a dictionary: the codec says which
    assert len(packed) < min(len(pack(messages, "deflate")), len(pack(messages, "gzip")))


def test_bytes_behind_the_end_of_a_frame_are_damage() -> None:
    """One changed bit pair makes zstd's compressed block one repeated byte, and its frame ends before the text does."""
    damaged = bytearray(pack(talk(3), "zstd"))
    damaged[6] ^= 0b110

    assert Unpacked([], "the compressed text is damaged") == unpack(bytes(damaged), "zstd")


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
    said, at = hello.content, hello.timestamp
    others = [(Role.USER, "Hellp", at), (Role.TOOL, said, at), (Role.USER, said, at + 1e-6)]

    assert 4 == len({check_of(hello), *(check_of(MessageEntry(*other)) for other in others)})


@pytest.mark.behaviour("topic-09")
def test_packing_saves_what_the_seed_says() -> None:
    """Words that recur, as in a conversation: 50 messages are at least 60 % smaller, base64 included."""
    raw, packed = json_bytes(talk(50)), pack(talk(50))

    assert len(packed) / len(raw) < 0.4
