"""Topic matching: cosines of a message to the topics' embeddings (topic memory, §1).

A topic's embedding is the running mean of its user messages' vectors, kept as int8 like those of `vectors`, so that a
cosine is the same on every machine. (The first message alone would match worse: `turntide lab eval topics` shows both.)
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.events.topic import TOPIC_DIMS
from models.session.topics.store import TopicStore
from models.state.vectors import norm_of, quantise

MEMORY: Final = 8
"""Messages after which the mean moves no slower: a matter that drifts is followed."""
_FIRST_ROWS: Final = 4
_RECORD = np.dtype([("weight", "u1"), ("vector", "i1", (TOPIC_DIMS,))])
"""257 bytes per topic, one part each."""


def topic_vector(vector: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """A message's vector as topics compare it, `(256,)`; None for a zero vector."""
    return quantise(vector, TOPIC_DIMS)


class TopicVectors:
    """The embeddings of a session's topics, `(n_topics, 256)`, read when first needed."""

    def __init__(self, store: TopicStore) -> None:
        self._store = store
        self._rows: dict[int, int] | None = None
        self._weights: list[int] = []
        self._matrix = np.zeros((_FIRST_ROWS, TOPIC_DIMS), dtype=np.float32)
        self._norms = np.ones(_FIRST_ROWS, dtype=np.float32)

    def has(self, slot: int) -> bool:
        """Whether a topic has an embedding: not before its first user message."""
        return slot in self._loaded()

    def cosines(self, vector: NDArray[np.float32]) -> dict[int, float]:
        """Cosine of a quantised vector to each topic that has an embedding, by slot."""
        rows = self._loaded()
        count = len(rows)
        near = (self._matrix[:count].dot(vector) / (self._norms[:count] * norm_of(vector))).tolist()
        # In the order of the topics, not of the rows: of equal ones the same comes first after a restart.
        return {slot: near[rows[slot]] for slot in self._store.index.slots if slot in rows}

    def near(self, slot: int) -> dict[int, float]:
        """Cosine of a topic's embedding to each other one, by slot."""
        row = self._loaded().get(slot)
        near = {} if row is None else self.cosines(self._matrix[row])
        near.pop(slot, None)
        return near

    def take(self, slot: int, embedding: bytes) -> None:
        """Give a topic the embedding that it had elsewhere."""
        self._store.put_embedding(slot, embedding)
        self._rows = None

    def merge(self, slot: int, other: int) -> None:
        """Let another topic's embedding move one, each by its weight; the other is forgotten."""
        row = self._loaded().get(other)
        if row is not None:
            self.learn(slot, self._matrix[row].copy(), self._weights[row])
        self.forget(other)

    def forget(self, slot: int) -> None:
        """A topic went, and its part with it."""
        if self._rows is not None and slot in self._rows:
            self._rows = None

    def learn(self, slot: int, vector: NDArray[np.float32], weight: int = 1) -> None:
        """Let a user's message, or what so many of them made, move a topic's embedding."""
        row = self._loaded().get(slot)
        before = 0 if row is None else min(self._weights[row], MEMORY - weight)
        mean = vector * (weight / np.float32(norm_of(vector)))
        if row is not None:
            mean = self._matrix[row] * (before / self._norms[row]) + mean
        quantised = topic_vector(mean.astype(np.float32))
        if quantised is not None:  # opposite vectors cancel out: the embedding stays
            weight = before + weight
            self._set(self._loaded(), slot, quantised, weight)
            self._store.put_embedding(slot, bytes((weight,)) + quantised.astype(np.int8).tobytes())

    def _loaded(self) -> dict[int, int]:
        if self._rows is None:
            kept = {slot: data for slot in self._store.index.slots if (data := self._store.embedding(slot))}
            records = np.frombuffer(b"".join(kept.values()), dtype=_RECORD)
            self._rows = {slot: row for row, slot in enumerate(kept)}
            self._weights = records["weight"].tolist()
            self._matrix = np.zeros((max(_FIRST_ROWS, len(records)), TOPIC_DIMS), dtype=np.float32)
            self._matrix[: len(records)] = records["vector"]
            self._norms = np.sqrt(np.einsum("ij,ij->i", self._matrix, self._matrix))
        return self._rows

    def _set(self, rows: dict[int, int], slot: int, vector: NDArray[np.float32], weight: int) -> None:
        row = rows.setdefault(slot, len(rows))
        if row == len(self._matrix):
            self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
            self._norms = np.concatenate([self._norms, np.ones_like(self._norms)])
        self._matrix[row] = vector
        self._norms[row] = norm_of(vector)
        self._weights[row : row + 1] = [weight]
