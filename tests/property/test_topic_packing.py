"""What holds for every packed text, whatever was said and whatever happened to it."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from models.events import Role
from models.policy.topic import TopicPolicy
from models.session.topics.packing import Codec, MessageEntry, json_bytes, pack, unpack
from models.session.topics.state import TopicState, entry_of
from models.session.topics.store import TopicStore
from models.state.buffer import BufferedTurn
from models.state.parts import Parts

CODECS = st.sampled_from(["zstd", "gzip", "deflate"])
TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
ENTRIES = st.builds(
    MessageEntry, st.sampled_from(Role), st.text(max_size=300), st.floats(-62_135_596_800, 253_402_300_799)
)
TURNS = st.lists(
    st.builds(
        BufferedTurn,
        st.integers(0, 2**53),
        st.sampled_from(Role),
        st.one_of(st.text(max_size=200), st.text("boat sails", min_size=50, max_size=400)),
        TIMES,
        st.none(),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda message: message.turn,
)
Edit = tuple[str, float, int]
EDITS = st.lists(
    st.tuples(st.sampled_from(["flip", "cut", "insert", "drop", "swap"]), st.floats(0, 1), st.integers(1, 255)),
    min_size=1,
    max_size=4,
)


def corrupted(data: bytes, edits: Sequence[Edit]) -> bytes:
    """The bytes after some accidents."""
    for kind, place, byte in edits:
        at = int(place * len(data))
        match kind:
            case "flip":
                data = data[:at] + bytes(each ^ byte for each in data[at : at + 1]) + data[at + 1 :]
            case "cut":
                data = data[:at]
            case "insert":
                data = data[:at] + bytes((byte,)) + data[at:]
            case "drop":
                data = data[:at] + data[at + byte % 8 + 1 :]
            case _:
                data = data[at:] + data[:at]
    return data


@given(st.lists(ENTRIES, max_size=20), CODECS)
def test_round_trip(messages: list[MessageEntry], codec: Codec) -> None:
    """Any role, text and time comes out as it went in."""
    unpacked = unpack(pack(messages, codec), codec)

    assert (messages, "") == (unpacked.messages, unpacked.damage)


@given(st.lists(ENTRIES, max_size=12), st.floats(0, 1), CODECS)
def test_cut_text_gives_a_prefix(messages: list[MessageEntry], place: float, codec: Codec) -> None:
    """However short it was cut."""
    packed = pack(messages, codec)
    cut = packed[: int(place * len(packed))]
    unpacked = unpack(cut, codec)

    assert messages[: len(unpacked.messages)] == unpacked.messages
    assert unpacked.damage or unpacked.messages == messages


@given(TURNS, EDITS, CODECS)
def test_a_damaged_block_gives_what_is_whole(turns: list[BufferedTurn], edits: list[Edit], codec: Codec) -> None:
    """What comes out was said so, in order; the rest is named with the damaged bytes: nothing is made up or unnamed."""
    parts = Parts({})
    store = TopicStore(parts, TopicPolicy())
    slot = store.add(TopicState("t", "", turns[0].timestamp, turns[0].timestamp, 0.5))
    block = store.pack_block(slot, turns, codec, len(json_bytes([entry_of(turn) for turn in turns])))
    assert (turns, None) == store.read_block(slot, block)
    packed = store.packed_block(slot, block)
    data = corrupted(packed.data, edits)
    parts.put("tp0.0", msgspec.msgpack.encode(msgspec.structs.replace(packed, data=data)))
    messages, damage = store.read_block(slot, block)

    lost = [] if damage is None else damage.turns
    assert messages == [turn for turn in turns if turn.turn not in lost]
    assert len(messages) + len(lost) == len(turns)
    assert damage is None or (damage.data == data and damage.detail)
