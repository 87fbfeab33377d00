"""A second reader of user turns that imitates the fine-tuned e5 (`e5_reader`) by the scorer's own features. English.

```
log-odds = offset + dense · embedding + mean of the words' weights
```

A linear model learnt what e5 reads in many texts, not their labels (distillation, Hinton et al. 2015). Features and
exact sums are those of `models.risk.turn_model`. How it was trained says deploy/models/distilled-reader.md.
"""

from collections.abc import Sequence

import numpy as np

from models.risk.turn_model import dense_sums, name_of, word_weights, words_mean
from models.text.disguise import as_meant
from models.text.words import fold_text, words_of
from streams.inference.reader_file import DistilledFile
from streams.ports import Embedder, Vectors

_DECIMALS = 2


class DistilledReader:
    """Log-odds that a turn is harmful; about 15 µs of CPU. A `TurnReader`; the same bits in any batch, on any machine.

    Attributes:
        data: The file's bytes.
        name: Version and the first twelve digits of the file's SHA-256.
    """

    def __init__(self, file: DistilledFile, data: bytes, embedder: Embedder) -> None:
        self.data = data
        self.name = name_of(file.version, data)
        self._file, self._embedder = file, embedder
        self._dense = np.frombuffer(file.dense, np.int8).astype(np.float32)
        self._words = word_weights(file.words)

    def readings(self, texts: Sequence[str], vectors: Vectors | None = None) -> list[float]:
        """Log-odds of each text as it is meant, to two digits; 0 of one that says nothing."""
        file, (meant, vectors) = self._file, as_meant_with(texts, vectors, self._embedder)
        readings = []
        for text, along in zip(meant, dense_sums(vectors, self._dense).tolist(), strict=True):
            said = words_mean(self._words, words_of(fold_text(text)))
            log_odds = file.offset + file.dense_scale * along + file.words_scale * said
            readings.append(round(log_odds, _DECIMALS) if text.strip() else 0.0)
        return readings


def as_meant_with(texts: Sequence[str], vectors: Vectors | None, embedder: Embedder) -> tuple[list[str], Vectors]:
    """Texts as they are meant (`models.text.disguise`) with their embeddings, of which those of the texts may be there.

    Args:
        texts: As they were written.
        vectors: By the embedder, `(n_texts, dim)`; None: to be made.
        embedder: Embeds what is missing, and what was hidden.
    """
    unmasked = [as_meant(text) for text in texts]
    meant = [each.text for each in unmasked]
    if vectors is None:
        return meant, embedder.embed(meant)
    if hidden := [n for n, each in enumerate(unmasked) if each.disguises]:
        vectors = vectors.copy()
        vectors[hidden] = embedder.embed([meant[n] for n in hidden])
    return meant, vectors
