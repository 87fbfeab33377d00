"""Older messages of a topic as one short text that anyone can unpack (topic memory, Compression format).

`gzip` is the source's: a JSON array of `{"role", "content", "timestamp"}`, gzip, base64. Unpack it anywhere:

    base64 -d packed.txt | gunzip

`zstd` (RFC 8878) packs the same JSON with a trained dictionary, `zstd.dict` beside this module, and without base64. So
does `deflate` (RFC 1951), which came before it, with one of phrases. All are deterministic, but another release of
libzstd or zlib may write other bytes that unpack to the same messages: who compares two packed texts unpacks them.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import sys
import zlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from models.events import Role

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Codec = Literal["zstd", "gzip", "deflate"]
_LEVEL: Final = 6
ZSTD_LEVEL: Final = 12
"""Measured: level 9 saves half a percent less of 20 messages in three quarters of the time, 19 half a percent more in
four times as long."""
_ZSTD_WINDOW_LOG: Final = 20
"""Most that a frame may ask for when it is unpacked: 1 MiB, nine times the largest block's JSON. So a damaged one asks
for no more."""
_RAW_DEFLATE: Final = -15
_EARLIEST: Final = -62_135_596_800
_LATEST: Final = 253_402_300_799
"""The first second of the year 1 and the last of 9999: where datetime begins and ends."""


class MessageEntry(Struct, frozen=True, gc=False):
    """A message as it is packed (topic memory, Data structures); `timestamp` is Unix time in seconds."""

    role: Role
    content: str
    timestamp: Annotated[float, Meta(ge=_EARLIEST, le=_LATEST)]


class Unpacked(Struct, frozen=True):
    """What came out of a packed text.

    Attributes:
        messages: All of them, or those before the damage.
        damage: What is wrong, without any of the text; empty if nothing is.
    """

    messages: list[MessageEntry]
    damage: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[MessageEntry]).decode


def json_bytes(messages: Sequence[MessageEntry]) -> bytes:
    """The JSON that is packed."""
    return _encode(messages)


def pack(messages: Sequence[MessageEntry], codec: Codec = "gzip") -> bytes:
    """Messages as one packed text; ASCII for `gzip`.

    >>> text = pack([MessageEntry(Role.USER, "Hello", 1234567890.0)])
    >>> gzip.decompress(base64.b64decode(text))
    b'[{"role":"user","content":"Hello","timestamp":1234567890.0}]'
    """
    raw = json_bytes(messages)
    if codec == "gzip":
        return base64.b64encode(gzip.compress(raw, _LEVEL, mtime=0))
    if codec == "zstd":
        return _zstd_compressor().compress(raw, zstd.ZstdCompressor.FLUSH_FRAME)
    stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW_DEFLATE, zdict=DICTIONARY)
    return stream.compress(raw) + stream.flush()


def unpack(packed: bytes, codec: Codec = "gzip") -> Unpacked:
    """Messages of a packed text. Of a damaged one, those before the damage; of `zstd` in steps of 128 KiB of JSON.

    It never raises.

    >>> unpack(pack([MessageEntry(Role.USER, "Hello", 0.0)])[:-30]).damage
    'the compressed text ends too early'
    """
    try:
        if codec == "gzip":
            return Unpacked(_decode(gzip.decompress(base64.b64decode(packed, validate=True))))
        stream = _inflater(codec)
        raw = stream.decompress(packed)
        if stream.eof:
            return Unpacked(_decode(raw))
    except (binascii.Error, OSError, *_BROKEN, msgspec.MsgspecError, UnicodeDecodeError):
        pass
    return _salvage(packed, codec)


def check_of(message: MessageEntry) -> int:
    """What tells a message from a damaged one, CRC-32 of its JSON: many a changed byte unpacks without complaint."""
    return zlib.crc32(_encode(message))


_BROKEN: Final = (zlib.error, zstd.ZstdError, EOFError)
"""The last by gzip for a text that ends too early, by zstd for what follows the end of a frame."""


@cache
def _zstd_dictionary() -> zstd.ZstdDict:
    return zstd.ZstdDict(files(__package__).joinpath("zstd.dict").read_bytes())


@cache
def _zstd_compressor() -> zstd.ZstdCompressor:
    """One for all texts: each is a frame of its own, and what was packed before leaves nothing in it."""
    kind = zstd.CompressionParameter
    options: dict[int, int] = {kind.compression_level: ZSTD_LEVEL, kind.content_size_flag: 0, kind.dict_id_flag: 0}
    return zstd.ZstdCompressor(options=options, zstd_dict=_zstd_dictionary().as_digested_dict)


def _inflater(codec: Codec) -> zlib._Decompress | zstd.ZstdDecompressor:
    if codec == "gzip":
        return zlib.decompressobj(zlib.MAX_WBITS | 16)
    if codec == "zstd":
        return zstd.ZstdDecompressor(_zstd_dictionary(), {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG})
    return zlib.decompressobj(_RAW_DEFLATE, zdict=DICTIONARY)


def _salvage(packed: bytes, codec: Codec) -> Unpacked:
    data, damage = _from_base64(packed) if codec == "gzip" else (packed, "")
    raw, broken = _inflate(data, codec)
    messages, invalid = _whole_messages(raw)
    return Unpacked(messages, damage or broken or invalid)


def _from_base64(packed: bytes) -> tuple[bytes, str]:
    """Up to the first character that is none of base64's, whole groups of four."""
    alphabet = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    clean = packed.rstrip(b"=")
    end = next((n for n, byte in enumerate(clean) if byte not in alphabet), len(clean))
    wrong = "the text is no base64 from some place on" if end < len(clean) else ""
    group = clean[:end]
    if len(group) % 4 == 1:
        group = group[:-1]
    return base64.b64decode(group + b"=" * (-len(group) % 4)), wrong


def _inflate(data: bytes, codec: Codec) -> tuple[bytes, str]:
    """Byte by byte, so that all that came out before the damage is kept."""
    stream, raw = _inflater(codec), list[bytes]()
    try:
        for place in range(len(data)):
            raw.append(stream.decompress(data[place : place + 1]))
    except _BROKEN:
        return b"".join(raw), "the compressed text is damaged"
    return b"".join(raw), "" if stream.eof else "the compressed text ends too early"


def _whole_messages(raw: bytes) -> tuple[list[MessageEntry], str]:
    """Messages up to the first that is not whole."""
    text, messages = _text_of(raw), list[MessageEntry]()
    at, decoder = text.find("[") + 1, json.JSONDecoder()
    if at == 0:
        return [], "what was packed is no JSON array"
    while True:
        at = _skip(text, at)
        if text[at : at + 1] == "]":
            return messages, ""
        try:
            item, at = decoder.raw_decode(text, at)
            messages.append(msgspec.convert(item, MessageEntry))
        except (ValueError, RecursionError, msgspec.ValidationError):
            return messages, f"what was packed is no valid message from number {len(messages)} on"


def _text_of(raw: bytes) -> str:
    """Up to the first byte that is no UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        return raw[: error.start].decode()


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in {" ", ",", "\n"}:
        at += 1
    return at


# The dictionary of the `deflate` codec: what conversations with assistants say again and again; the likeliest stands
# last, as deflate wants it. A packed text can only be read with the dictionary that packed it: neither this one nor
# `zstd.dict` is ever changed, only followed by another codec.
_PHRASES = files(__package__).joinpath("dictionary.txt").read_text(encoding="utf-8").replace("\n", " ")
_FIELDS = (
    '"}, {"role":"system","content":"","timestamp":17 {"role":"assistant","content":"I '
    '","timestamp":1700000000.0},{"role":"assistant","content":"","timestamp":1800000000.0},'
    '{"role":"user","content":"'
)
DICTIONARY = (_PHRASES + _FIELDS).encode()
