"""The trained turn scorer: risk of single user turns from words and a static embedding. Microseconds; English.

```
log-odds = offset + dense · embedding + mean of the words' weights + rules · risk by the rules
```

The embedding is that of wordllama (256 dimensions) as whole numbers, the words are the text's distinct words and pairs
of neighbours, hashed (feature hashing, Weinberger et al. 2009): the file contains no word of its training data. All
weights are integers from -127 to 127 with one scale per kind, and all sums are of integers below 2^24: a risk is bit
for bit the same in any batch and on any machine.

A model scores each turn alone. `models.risk.sequence` has the signals over several turns.
"""

import math
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Annotated, TypeVar
from zlib import crc32

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from models.errors import ConfigurationError
from models.policy.escalation import CombinationModel
from models.risk.harm import HARMS, HarmWeights, by_harm, per_cents
from models.risk.scorer import score_folded
from models.risk.sequence import SIGNAL_NAMES, sigmoid
from models.text.words import fold_text, words_of

DIMS = 256
"""Dimensions of the embedding."""
WORD_BITS = 14
"""Bits of a hashed word: 16,384 weights, one byte each."""
FORMAT = 1
"""Version of the file format: increased when the layout or the meaning of a weight changes."""
EMBEDDER = "wordllama"
_WORD_MASK = (1 << WORD_BITS) - 1
_SIGN_BIT = 1 << WORD_BITS
_SIGNED_MASK = _SIGN_BIT | _WORD_MASK
_DECIMALS = 4
_LARGEST = 1e6
"""Limit of log-odds for valid weights: sums of a few weights stay finite."""
_TRAIN = "Train one with `turntide lab train scorer`, or leave scorer.file empty for the shipped one."


class TurnWeights(Struct, frozen=True, kw_only=True):
    """Weights of the turn scorer.

    Attributes:
        dense: Weights of the embedding's dimensions, `DIMS` bytes, each int8.
        dense_scale: Log-odds of a dense weight of 1 times a unit vector's dimension of 1.
        words: Weights of the hashed words, `2 ** WORD_BITS` bytes, each int8.
        words_scale: Log-odds of a word's weight of 1.
        rules: Log-odds of a risk of 1 by the rules.
        offset: Log-odds of a text without any feature.
    """

    dense: bytes
    dense_scale: float
    words: bytes
    words_scale: float
    rules: float
    offset: float


class SourceCard(Struct, frozen=True):
    """A source of training data."""

    name: str
    label: str
    licence: str
    dialogues: int
    turns: int


class ModelCard(Struct, frozen=True, kw_only=True):
    """Origin, quality and known failures of a model.

    Attributes:
        trained_on: Day of the training, ISO 8601.
        seed: Random seed of the training.
        sources: Training data.
        base_rate: Share of escalating sessions that its probabilities assume.
        measured: Figures by name, on families that were not in the training data.
        failures: Known failures.
    """

    trained_on: str
    seed: int
    sources: list[SourceCard]
    base_rate: float
    measured: dict[str, float] = {}
    failures: list[str] = []


class ScorerFile(Struct, frozen=True, kw_only=True):
    """Content of a scorer's file."""

    version: Annotated[str, Meta(min_length=1, max_length=64)]
    """First part of the scorer's name, before the digest."""
    turn: TurnWeights
    base: int
    """Log-odds of a session without observations, in ten-thousandths."""
    weights: dict[str, int]
    """Weights of the sequence signals, in ten-thousandths of log-odds (`CombinationModel`); a missing one is 0."""
    card: ModelCard
    harms: HarmWeights | None = None
    """Weights for kinds of harm; None in files of earlier releases: every alert is `other`."""


class _Envelope(Struct, frozen=True, array_like=True):
    kind: str
    format: int
    sha256: bytes
    body: bytes


_Held = TypeVar("_Held", bound=Struct)
_KIND = "turntide-scorer"
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class TurnModel:
    """A scorer's file, ready to score.

    Attributes:
        file: Content of the file.
        name: Version and the first twelve digits of the file's SHA-256, as in alerts.
        data: The file's bytes.
        combination: Its weights of the calibrated combination.
    """

    def __init__(self, file: ScorerFile, data: bytes) -> None:
        self.file = file
        self.data = data
        self.name = name_of(file.version, data)
        self.combination = CombinationModel(name=self.name, base=file.base, weights=file.weights)
        self._dense = np.frombuffer(file.turn.dense, dtype=np.int8).astype(np.float32)
        self._words = word_weights(file.turn.words)

    def risks(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> list[float]:
        """Risk of each turn, 0-1, to four digits.

        Args:
            texts: Texts of the turns.
            vectors: Their embeddings by wordllama, `(n_texts, 256)` float32; a zero row is a text without one.
        """
        weights = self.file.turn
        risks = []
        for text, along in zip(texts, dense_sums(vectors, self._dense).tolist(), strict=True):
            folded = fold_text(text)
            words = words_of(folded)
            log_odds = (
                weights.offset
                + weights.dense_scale * along
                + weights.words_scale * words_mean(self._words, words)
                + weights.rules * score_folded(folded, set(words))
            )
            risks.append(round(sigmoid(log_odds), _DECIMALS))
        return risks

    def harms(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> list[tuple[int, ...]]:
        """Kinds of harm of each turn, in per cent in the order of `Harm`; none where the file has no such weights.

        Args:
            texts: Texts of the turns.
            vectors: As for `risks`.
        """
        if (weights := self.file.harms) is None:
            return [()] * len(texts)
        dense, words = by_harm(weights.dense).astype(np.float32), by_harm(weights.words)
        along = dense_sums(vectors, dense.T).T.tolist()
        told = []
        for text, sums in zip(texts, along, strict=True):
            places = np.array([place_of(each) for each in word_hashes(fold_text(text))], np.int64).reshape(-1, 2)
            said = words[:, places[:, 0]] @ places[:, 1]
            scale = weights.words_scale / math.sqrt(max(1, len(places)))
            by_kind = zip(weights.offsets, sums, said.tolist(), strict=True)
            told.append(tuple(per_cents([o + weights.dense_scale * d + scale * w for o, d, w in by_kind])))
        return told


def word_weights(data: bytes) -> list[int]:
    """Weights of the hashed words by index and sign, from those by index that a file holds."""
    weights: list[int] = np.frombuffer(data, dtype=np.int8).tolist()
    return weights + [-weight for weight in weights]


def words_mean(weights: Sequence[int], said: Sequence[str]) -> float:
    """Sum of the words' signed weights over the root of their number: the text's words are a unit vector."""
    hashes = _hashes(said)
    return sum([weights[each & _SIGNED_MASK] for each in hashes]) / math.sqrt(len(hashes)) if hashes else 0.0


def word_hashes(folded: str) -> set[int]:
    """Hashes of a folded text's distinct words and pairs of neighbours: `WORD_BITS` of index and one of sign."""
    return _hashes(words_of(folded))


def _hashes(said: Sequence[str]) -> set[int]:
    words = [b"\0" + word.encode("utf-8", "surrogatepass") for word in said]
    hashes = [crc32(word[1:]) for word in words]
    return {*hashes, *map(crc32, words[1:], hashes)}


def place_of(word_hash: int) -> tuple[int, int]:
    """Index of a hash in the weights, and its sign."""
    return word_hash & _WORD_MASK, -1 if word_hash & _SIGN_BIT else 1


def whole_vectors(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows quantised to integers from -127 to 127, each with its own scale; zero rows stay, `(n, DIMS)` float32."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    whole: NDArray[np.float32] = np.rint(
        vectors * np.divide(127.0, largest, out=np.zeros_like(largest), where=largest > 0)
    )
    return whole


def dense_sums(vectors: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float64]:
    """Products of unit rows with integer weights, exact before the division by the row's norm.

    `(n,)`; with weights of several kinds, `(DIMS, n_kinds)`, it is `(n_kinds, n)`.
    """
    whole = whole_vectors(vectors)
    sums, lengths = (whole @ weights).T, np.sqrt(np.einsum("ij,ij->i", whole, whole), dtype=np.float64)
    products: NDArray[np.float64] = np.divide(sums, lengths, out=np.zeros(sums.shape), where=lengths > 0)
    return products


def name_of(version: str, data: bytes) -> str:
    """Name of a file of weights: its version and the first digits of its SHA-256."""
    return f"{version}@{sha256(data).hexdigest()[:12]}"


def sealed(kind: str, file: Struct) -> bytes:
    """The bytes of a file of weights: content, kind, format and digest."""
    body = msgspec.msgpack.encode(file)
    return msgspec.msgpack.encode(_Envelope(kind, FORMAT, sha256(body).digest(), body))


def unsealed(data: bytes, kind: str, holds: type[_Held], named: str, instead: str) -> _Held:
    """Content of a file of weights.

    Args:
        data: Bytes from `sealed`.
        kind: Kind of the file, `turntide-scorer` or `turntide-reader`.
        holds: Type of its content.
        named: Name of the file in errors.
        instead: Advice in errors.

    Raises:
        ConfigurationError: A file of another kind or format, or a damaged one.
    """
    none = f"not the file of a {kind.removeprefix('turntide-')}"
    try:
        envelope = msgspec.msgpack.decode(data, type=_Envelope)
    except _UNREADABLE as error:
        raise ConfigurationError(f"{named} is damaged or {none} ({error}). {instead}") from error
    if envelope.kind != kind:
        raise ConfigurationError(f"{named} is {none}. {instead}")
    if envelope.format != FORMAT:
        raise ConfigurationError(f"{named} has format {envelope.format}, this release reads {FORMAT}. {instead}")
    if sha256(envelope.body).digest() != envelope.sha256:
        raise ConfigurationError(f"{named} is damaged: its content does not match its digest. {instead}")
    try:
        return msgspec.msgpack.decode(envelope.body, type=holds)
    except _UNREADABLE as error:
        raise ConfigurationError(f"{named} cannot be read ({error}). {instead}") from error


def write_model(file: ScorerFile) -> bytes:
    """The bytes of a scorer's file."""
    return sealed(_KIND, file)


def read_model(data: bytes, named: str) -> TurnModel:
    """Read a scorer's file.

    Raises:
        ConfigurationError: As `unsealed`, or the weights are out of range.
    """
    file = unsealed(data, _KIND, ScorerFile, named, _TRAIN)
    for objection in _objections(file):
        raise ConfigurationError(f"{named} {objection}. {_TRAIN}")
    return TurnModel(file, data)


def _objections(file: ScorerFile) -> Iterator[str]:
    """Errors in the weights of a complete file, which would otherwise only show as missing alerts."""
    turn = file.turn
    if len(turn.dense) != DIMS or len(turn.words) != 1 << WORD_BITS:
        yield "has weights of another size than this release"
    harms = file.harms
    told = () if harms is None else (harms.dense_scale, harms.words_scale, *harms.offsets)
    numbers = (turn.dense_scale, turn.words_scale, turn.rules, turn.offset, *told)
    if not all(abs(number) <= _LARGEST for number in numbers):
        yield f"has a scale, rules or offset that is not a number, or above {_LARGEST:g}"
    sizes = DIMS * len(HARMS), len(HARMS) << WORD_BITS, len(HARMS)
    if harms is not None and (len(harms.dense), len(harms.words), len(harms.offsets)) != sizes:
        yield "has weights of kinds of harm of another size than this release"
    if unknown := sorted(file.weights.keys() - set(SIGNAL_NAMES)):
        yield f"has weights of signals that this release lacks ({', '.join(unknown)}): another release wrote it"
    if not any(file.weights.values()):
        yield "has no weight of a session's signals: no session could ever raise an alert"
