"""File of a second reader: changes to an encoder's weights, a head, and the weight of its signal (`READER`)."""

from msgspec import Struct

from models.risk.turn_model import sealed, unsealed

_KIND = "turntide-reader"
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


def write_reader(file: ReaderFile) -> bytes:
    """The bytes of a reader's file."""
    return sealed(_KIND, file)


def read_reader(data: bytes) -> ReaderFile:
    """Read a reader's file.

    Raises:
        ConfigurationError: As `unsealed`.
    """
    return unsealed(data, _KIND, ReaderFile, "the reader's file", INSTEAD)
