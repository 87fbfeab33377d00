"""The trained scorer: reads its file, embeds, and asks the pure model (`models.risk.turn_model`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec import structs

from models.errors import ConfigurationError
from models.events import AnyTurn
from models.policy.escalation import CombinationModel
from models.risk.reading import READER
from models.risk.turn_model import EMBEDDER, TurnModel, name_of, read_model
from streams.inference.distilled_reader import DistilledReader, as_meant_with
from streams.inference.reader_file import DistilledFile, read_reader
from streams.ports import Embedder, TurnReader, Vectors

SHIPPED = Path(__file__).parent / "escalation.scorer"


class _Pair(msgspec.Struct, frozen=True, array_like=True, tag="turntide-scorer-and-reader"):
    """How the files of both are kept as one."""

    scorer: bytes
    reader: bytes


class TrainedScorer:
    """Scores turns by a trained model. A `TurnScorer`.

    Attributes:
        name: Version and digest of the model's file, and of the second reader's where there is one.
        reads: The embedder whose vectors `score` can take.
        reader: The second reader; None without one.
    """

    reads = EMBEDDER

    def __init__(self, model: TurnModel, embedder: Embedder, reader: TurnReader | None = None) -> None:
        self.model = model
        self.combination = combined(model, None if reader is None else reader.data)
        self.name = self.combination.name
        self._embedder = embedder
        self.reader = reader

    @property
    def file(self) -> bytes:
        """Bytes of the model, and of the second reader, which are kept so that its alerts can be reproduced."""
        data, reader = self.model.data, self.reader
        return data if reader is None else msgspec.msgpack.encode(_Pair(data, reader.data))

    def score(self, turns: Sequence[AnyTurn], vectors: Vectors | None = None) -> list[float]:
        """Risk of each turn, 0-1, whatever its role; no state across turns or calls."""
        return self.risks([turn.content for turn in turns], vectors)

    def harms(self, turns: Sequence[AnyTurn], vectors: Vectors | None = None) -> list[tuple[int, ...]]:
        """Kinds of harm of each turn, in per cent."""
        return self.model.harms(*as_meant_with([turn.content for turn in turns], vectors, self._embedder))

    def risks(self, texts: Sequence[str], vectors: Vectors | None = None) -> list[float]:
        """Risk of each text, 0-1. What hides is read as it is meant (`models.text.disguise`), and embedded as that."""
        return self.model.risks(*as_meant_with(texts, vectors, self._embedder))


def combined(model: TurnModel, reader: bytes | None) -> CombinationModel:
    """The model's weights of signals, with that of a second reader's, whose file is given; the name names both."""
    if reader is None:
        return model.combination
    file, plain = read_reader(reader), model.combination
    name = f"{plain.name}+{name_of(file.version, reader)}"
    weights, held = {**plain.weights, READER: file.weight}, isinstance(file, DistilledFile)
    return structs.replace(plain, name=name, base=plain.base + file.base, weights=weights, holds_reader=held)


def shipped_reader(kind: str) -> bytes:
    """File of the second reader `distilled` or `e5`."""
    return SHIPPED.with_name(f"{kind}.reader").read_bytes()


def reader_file(kind: str) -> bytes | None:
    """File of the second reader that `scorer.reader` names; None where it is off."""
    return None if kind == "off" else shipped_reader(kind)


def reader_of(data: bytes | None, embedder: Embedder) -> TurnReader | None:
    """The second reader of a file, which embeds with wordllama's embedder; None without one.

    Raises:
        ConfigurationError: The file is damaged, or needs the extra `e5`, which is not installed.
        JarError: It needs e5's model, which is not in the cache and cannot be fetched.
    """
    if data is None:
        return None
    file = read_reader(data)
    return DistilledReader(file, data, embedder) if isinstance(file, DistilledFile) else _e5_reader(data)


@lru_cache(maxsize=1)
def _e5_reader(data: bytes) -> TurnReader:
    """One for all roles of a process."""
    from streams.inference.e5_reader import E5Reader  # noqa: PLC0415 - extra `e5`

    return E5Reader(data)


def kept_scorer(data: bytes, named: str, embedder: Embedder) -> TrainedScorer:
    """The scorer whose `file` was kept.

    Raises:
        ConfigurationError: It is damaged, or what its second reader needs is missing.
    """
    try:
        pair = msgspec.msgpack.decode(data, type=_Pair)
    except msgspec.MsgspecError:
        return trained_scorer(read_model(data, named), embedder)
    return trained_scorer(read_model(pair.scorer, named), embedder, pair.reader)


def trained_scorer(model: TurnModel, embedder: Embedder, reader: bytes | None = None) -> TrainedScorer:
    """A scorer with the embedder at hand, or its own where that is another one; with the second reader of a file."""
    if embedder.name != EMBEDDER:
        from streams.inference.wordllama import WordLlamaEmbedder  # noqa: PLC0415 - its libraries take a while to import

        embedder = WordLlamaEmbedder()
    return TrainedScorer(model, embedder, reader_of(reader, embedder))


def model_at(path: Path | None) -> TurnModel:
    """The model of a file, or the shipped one.

    Raises:
        ConfigurationError: It cannot be read; says what to do.
    """
    found = path or SHIPPED
    try:
        data = found.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"scorer.file {found.name}: {error.strerror}. Set it to a file of `turntide lab train scorer`, leave it "
            'empty for the shipped one, or set scorer.kind to "rules".'
        ) from error
    return _read(data, f"scorer.file {found.name}")


@lru_cache(maxsize=1)
def _read(data: bytes, name: str) -> TurnModel:
    """One for all roles of a process, and for their policies."""
    return read_model(data, name)
