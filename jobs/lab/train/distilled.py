"""Distillation of the second reader: the scorer's own features learn what the fine-tuned e5 reads in texts.

Least squares with a prior towards zero; labels teach nothing, so texts of families with one label teach too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.linalg import lsqr

from jobs.lab.train.reader import WEIGHT, halves_of
from jobs.lab.train.scorer import own_dialogues, own_pairs
from jobs.lab.train.turns import features_of, int8_parts
from jobs.shared.dialogues import LabelledDialogue
from streams.inference.distilled_reader import DistilledReader
from streams.inference.reader_file import DistilledFile, write_reader
from streams.ports import Embedder, TurnReader

if TYPE_CHECKING:
    from jobs.shared.output import Progress

PRIOR_STRENGTH = 10.0
"""Inverse variance of a weight, where a reading's is 1: 3 and 100 differ little on families left out."""
BOUND = 8.0
"""Log-odds beyond which the teacher's readings are cut."""
SHARE = 2
"""Of its signal's weight to the fine-tuned reader's: a quarter of the spread of the scorer's own log-odds."""
BASE = -4_000
"""With it the shipped threshold finds as many attacks as without the reader, with fewer false alarms."""
_BATCH = 500


def texts_of(pooled: Iterable[LabelledDialogue]) -> list[str]:
    """Halves of the project's pairs, then what users say in its dialogues and in these."""
    dialogues = [*own_dialogues(), *pooled]
    return [*halves_of(own_pairs()), *(text for each in dialogues for text in each.said_by_user)]


def distilled_from(
    texts: Sequence[str], teacher: TurnReader, embedder: Embedder, version: str, progress: Progress
) -> DistilledReader:
    """A reader that imitates another on these texts, where its readings have the other's mean and deviation."""
    read = list[float]()
    for first in range(0, len(texts), _BATCH):
        read += teacher.readings(texts[first : first + _BATCH])
        progress(min(first + _BATCH, len(texts)), len(texts))
    wanted, features = np.clip(read, -BOUND, BOUND), features_of(texts, embedder)[:, :-1]
    weights = lsqr(features, wanted - wanted.mean(), damp=PRIOR_STRENGTH**0.5, iter_lim=100)[0]
    imitated = features @ weights
    factor = float(wanted.std() / imitated.std())
    file = DistilledFile(
        version=version,
        offset=round(float(wanted.mean() - factor * imitated.mean()), 6),
        weight=SHARE * WEIGHT,
        base=BASE,
        **int8_parts(weights, factor),
    )
    return DistilledReader(file, write_reader(file), embedder)
