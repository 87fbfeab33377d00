"""Compression of real conversations, by codec, beside the source figures; and the time of unpacking.

The seed's codec is JSON → gzip → base64. Beside it: the same without base64, the project's second codec (`deflate`
with a shared dictionary) and, if the package `zstandard` is installed, zstd with a dictionary trained on the other half
of the messages, to show what training would give.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from time import thread_time

from msgspec import Struct

from jobs.lab.bench.topics_walk import LongSession
from models.session.topics.packing import Codec, MessageEntry, json_bytes, pack, unpack

COUNTS = (10, 20, 50)
"""Messages packed at once (seed 001, Compression ratio)."""
SEED_SAVES_PERCENT = {10: 86.6, 20: 86.1, 50: 85.9}
SEED_JSON_KB = {10: 8.2, 20: 16.5, 50: 41.2}
"""So the seed's messages have about 820 bytes each; gzip saves more of longer ones."""
_KB = 1_000
_DICTIONARY_BYTES = 32_768
_ZSTD_LEVEL = 19
_ZSTD_LEAST_STRINGS = 16


class PackingRow(Struct, frozen=True):
    """Strings of so many messages, packed. Savings are of all their bytes together, in percent.

    Attributes:
        messages: In each string.
        strings: How many.
        json_kb: Mean size of the JSON, in 1,000 bytes.
        seed_json_kb: What the seed's had.
        gzip_base64_kb: Mean size as the seed packs it.
        seed_saves_percent: What the seed says of its own.
        gzip_base64_saves_percent: Codec `gzip`.
        gzip_saves_percent: The same without base64.
        base64_costs_percent: How much longer base64 makes it.
        deflate_saves_percent: Codec `deflate`.
        zstd_saves_percent: None where it was not measured.
    """

    messages: int
    strings: int
    json_kb: float
    seed_json_kb: float
    gzip_base64_kb: float
    seed_saves_percent: float
    gzip_base64_saves_percent: float
    gzip_saves_percent: float
    base64_costs_percent: float
    deflate_saves_percent: float
    zstd_saves_percent: float | None


def strings_of(sessions: Sequence[LongSession], messages: int) -> list[list[MessageEntry]]:
    """The sessions cut into strings of so many messages one after the other; what is left over is dropped."""
    strings = []
    for session in sessions:
        said = [MessageEntry(turn.role, turn.content, turn.timestamp.timestamp()) for turn in session.turns]
        strings += [said[n : n + messages] for n in range(0, len(said) - messages + 1, messages)]
    return strings


def packing_rows(sessions: Sequence[LongSession]) -> list[PackingRow]:
    """A row for each count of which there is a string."""
    by_count = {count: strings_of(sessions, count) for count in COUNTS}
    return [_row(count, strings) for count, strings in by_count.items() if strings]


def _row(count: int, strings: Sequence[Sequence[MessageEntry]]) -> PackingRow:
    raw = [json_bytes(string) for string in strings]
    raw_bytes = sum(map(len, raw))
    seeds = [pack(string, "gzip") for string in strings]
    seeds_bytes = sum(map(len, seeds))
    binary_bytes = sum(len(b64decode(packed)) for packed in seeds)
    deflated_bytes = sum(len(pack(string, "deflate")) for string in strings)
    zstd_bytes = zstd_trained_bytes(raw)
    return PackingRow(
        messages=count,
        strings=len(strings),
        json_kb=raw_bytes / len(strings) / _KB,
        seed_json_kb=SEED_JSON_KB[count],
        gzip_base64_kb=seeds_bytes / len(strings) / _KB,
        seed_saves_percent=SEED_SAVES_PERCENT[count],
        gzip_base64_saves_percent=saved_percent(raw_bytes, seeds_bytes),
        gzip_saves_percent=saved_percent(raw_bytes, binary_bytes),
        base64_costs_percent=(seeds_bytes / binary_bytes - 1) * 100,
        deflate_saves_percent=saved_percent(raw_bytes, deflated_bytes),
        zstd_saves_percent=None if zstd_bytes is None else saved_percent(raw_bytes, zstd_bytes),
    )


def saved_percent(before: int, after: int) -> float:
    """How much smaller.

    >>> saved_percent(200, 50)
    75.0
    """
    return (1 - after / before) * 100


def zstd_trained_bytes(raw: Sequence[bytes]) -> int | None:
    """All texts packed, each half with a dictionary of the other half; None without the package or with few texts."""
    if find_spec("zstandard") is None or len(raw) < _ZSTD_LEAST_STRINGS:
        return None
    zstandard = import_module("zstandard")
    middle = len(raw) // 2
    packed_bytes = 0
    for trained, packed in ((raw[:middle], raw[middle:]), (raw[middle:], raw[:middle])):
        size = min(_DICTIONARY_BYTES, sum(map(len, trained)) // 8)
        dictionary = zstandard.train_dictionary(size, list(trained))
        compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, dict_data=dictionary)
        packed_bytes += sum(len(compressor.compress(text)) for text in packed)
    return packed_bytes


def unpack_ms(sessions: Sequence[LongSession], codec: Codec) -> list[float]:
    """CPU milliseconds for each string of fifty messages; shorter strings where the sessions have none."""
    strings = next((found for count in reversed(COUNTS) if (found := strings_of(sessions, count))), [])
    return [_timed_ms(pack(string, codec), lambda packed: unpack(packed, codec)) for string in strings]


def _timed_ms(packed: bytes, work: Callable[[bytes], object]) -> float:
    began = thread_time()
    work(packed)
    return (thread_time() - began) * 1000
