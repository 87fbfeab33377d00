"""The trained scorer: reads its file, embeds, and asks the pure model (`models.risk.turn_model`)."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from models.errors import ConfigurationError
from models.events import AnyTurn
from models.risk.turn_model import EMBEDDER, TurnModel, read_model
from models.text.disguise import unmask
from models.text.words import capped
from streams.ports import Embedder, Vectors

SHIPPED = Path(__file__).parent / "escalation.scorer"


class TrainedScorer:
    """Scores turns by a trained model. A `TurnScorer`.

    Attributes:
        name: Version and digest of the model's file.
        reads: The embedder whose vectors `score` can take.
    """

    reads = EMBEDDER

    def __init__(self, model: TurnModel, embedder: Embedder) -> None:
        self.model = model
        self.name = model.name
        self._embedder = embedder

    @property
    def file(self) -> bytes:
        """Bytes of the model, which are kept so that its alerts can be reproduced."""
        return self.model.data

    def score(self, turns: Sequence[AnyTurn], vectors: Vectors | None = None) -> list[float]:
        """Risk of each turn, 0-1, whatever its role; no state across turns or calls."""
        return self.risks([turn.content for turn in turns], vectors)

    def harms(self, turns: Sequence[AnyTurn], vectors: Vectors | None = None) -> list[tuple[int, ...]]:
        """Kinds of harm of each turn, in per cent."""
        return self.model.harms(*self._meant([turn.content for turn in turns], vectors))

    def risks(self, texts: Sequence[str], vectors: Vectors | None = None) -> list[float]:
        """Risk of each text, 0-1. What hides is read as it is meant (`models.text.disguise`), and embedded as that.

        Any string will do: lone surrogates, which no record holds and no tokeniser takes, are read as question marks.
        """
        return self.model.risks(*self._meant(texts, vectors))

    def _meant(self, texts: Sequence[str], vectors: Vectors | None) -> tuple[list[str], Vectors]:
        """The texts as they are meant, and their embeddings."""
        unmasked = [unmask(_well_formed(capped(text))) for text in texts]
        meant = [each.text for each in unmasked]
        if vectors is None:
            return meant, self._embedder.embed(meant)
        if hidden := [n for n, each in enumerate(unmasked) if each.disguises]:
            vectors = vectors.copy()
            vectors[hidden] = self._embedder.embed([meant[n] for n in hidden])
        return meant, vectors


def _well_formed(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def trained_scorer(model: TurnModel, embedder: Embedder) -> TrainedScorer:
    """A scorer with the embedder at hand, or its own where that is another one."""
    if embedder.name == EMBEDDER:
        return TrainedScorer(model, embedder)
    from streams.inference.wordllama import WordLlamaEmbedder  # noqa: PLC0415 - its libraries take a while to import

    return TrainedScorer(model, WordLlamaEmbedder())


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
            f"scorer.file {found.name}: {error.strerror}. Name a file of `turntide lab train scorer`, leave it empty "
            'for the shipped one, or set scorer.kind to "rules".'
        ) from error
    return _read(data, f"scorer.file {found.name}")


@lru_cache(maxsize=1)
def _read(data: bytes, name: str) -> TurnModel:
    """One for all roles of a process, and for their policies."""
    return read_model(data, name)
