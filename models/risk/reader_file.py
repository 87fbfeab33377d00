"""File of a second reader: changes to an encoder's weights, a head, and the weight of its signal (`READER`)."""

from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct

from models.errors import ConfigurationError

FORMAT = 1
"""Raised when the layout or the meaning of a weight changes."""
INSTEAD = 'Install this release again, or set scorer.reader to "off".'


class ChangedWeights(Struct, frozen=True, array_like=True):
    """A matrix of e5 that is changed: `(384, 384)`, inputs by outputs.

    Attributes:
        scales_at: Where its float32 scales begin in the model's file, one a column.
        weights_at: Where its int8 weights begin.
        down: `(384, rank)` float16.
        up: `(rank, 384)` float16; the product of both is added.
    """

    scales_at: int
    weights_at: int
    down: bytes
    up: bytes


class ReaderFile(Struct, frozen=True, kw_only=True):
    """Everything that a reader's file holds.

    Attributes:
        version: Named before the digest by all that names the file.
        model: SHA-256 of e5's ONNX file, to which alone it belongs.
        changes: To its matrices.
        head: Log-odds of a dimension of the mean hidden state, 384 float32.
        offset: Log-odds added.
        weight: Of the signal in a session's log-odds at the value 1, in ten-thousandths.
    """

    version: str
    model: bytes
    changes: list[ChangedWeights]
    head: bytes
    offset: float
    weight: int


class _ReaderEnvelope(Struct, frozen=True, array_like=True):
    kind: Literal["turntide-reader"]
    format: int
    sha256: bytes
    body: bytes


def name_of(file: ReaderFile, data: bytes) -> str:
    """Version and digest."""
    return f"{file.version}@{sha256(data).hexdigest()[:12]}"


def write_reader(file: ReaderFile) -> bytes:
    """The bytes of a reader's file."""
    body = msgspec.msgpack.encode(file)
    return msgspec.msgpack.encode(_ReaderEnvelope("turntide-reader", FORMAT, sha256(body).digest(), body))


def read_reader(data: bytes) -> ReaderFile:
    """Read a reader's file.

    Raises:
        ConfigurationError: No reader's file, a damaged one, or one of another format.
    """
    try:
        envelope = msgspec.msgpack.decode(data, type=_ReaderEnvelope)
        file = msgspec.msgpack.decode(envelope.body, type=ReaderFile)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the reader's file is damaged or none ({error}). {INSTEAD}") from error
    if envelope.format != FORMAT or sha256(envelope.body).digest() != envelope.sha256:
        raise ConfigurationError(f"the reader's file is damaged or of another release. {INSTEAD}")
    return file
