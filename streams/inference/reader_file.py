"""Files of second readers of user turns: what they read by, and the weight of their signal (`READER`)."""

from msgspec import Struct

from models.errors import ConfigurationError
from models.risk.turn_model import sealed, unsealed

_KIND, _DISTILLED = "turntide-reader", "turntide-distilled"
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
    """Everything that the file of a fine-tuned e5 holds.

    Attributes:
        version: Named before the digest by all that names the file.
        model: SHA-256 of e5's ONNX file, to which alone it belongs.
        changes: To its matrices.
        head: Log-odds of a dimension of the mean hidden state, 384 float32.
        offset: Log-odds added.
        weight: Of the signal in a session's log-odds at the value 1, in ten-thousandths.
        base: Added to a session's log-odds, as the signal only raises; likewise.
    """

    version: str
    model: bytes
    changes: list[ChangedWeights]
    head: bytes
    offset: float
    weight: int
    base: int = 0


class DistilledFile(Struct, frozen=True, kw_only=True):
    """Everything that the file of a distilled reader holds: a linear model of the scorer's own features.

    Attributes:
        version: Named before the digest by all that names the file.
        dense: Weights of wordllama's dimensions, int8.
        dense_scale: Log-odds of a dense weight of 1 times a unit vector's dimension of 1.
        words: Weights of the hashed words, int8.
        words_scale: Log-odds of a word's weight of 1.
        offset: Log-odds of a text without any feature.
        weight: Of the signal in a session's log-odds at the value 1, in ten-thousandths.
        base: Added to a session's log-odds, as the signal only raises; likewise.
    """

    version: str
    dense: bytes
    dense_scale: float
    words: bytes
    words_scale: float
    offset: float
    weight: int
    base: int


def write_reader(file: ReaderFile | DistilledFile) -> bytes:
    """The bytes of a reader's file."""
    return sealed(_DISTILLED if isinstance(file, DistilledFile) else _KIND, file)


def read_reader(data: bytes) -> ReaderFile | DistilledFile:
    """Read a reader's file, of either kind.

    Raises:
        ConfigurationError: As `unsealed`.
    """
    try:
        return unsealed(data, _DISTILLED, DistilledFile, "the reader's file", INSTEAD)
    except ConfigurationError:
        return read_fine_tuned(data)


def read_fine_tuned(data: bytes) -> ReaderFile:
    """Read the file of a fine-tuned e5.

    Raises:
        ConfigurationError: As `unsealed`.
    """
    return unsealed(data, _KIND, ReaderFile, "the reader's file", INSTEAD)
