"""Which topic a message is like: cosines to the topics' embeddings (seed 001, §1).

A topic's embedding is the running mean of its user messages' vectors, kept as int8 like those of `vectors`, so that a
cosine is the same on every machine. (The first message alone would match worse: `turntide eval topics` shows both.)
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.memory.topic_state import Topic
from models.memory.topic_store import TopicStore
from models.memory.vectors import quantise

TOPIC_DIMS: Final = 256
"""Dimensions kept: topics are told apart better than with the 64 of the detectors (`turntide eval topics`)."""
MEMORY: Final = 8
"""Messages after which the mean moves no slower: a matter that drifts is followed."""


_FIRST_ROWS: Final = 4


def topic_vector(vector: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """A message's vector as topics compare it, `(256,)`; None for a zero vector."""
    return quantise(vector, TOPIC_DIMS)


class TopicVectors:
    """The embeddings of a session's topics, `(n_topics, 256)`, read when first needed."""

    def __init__(self, store: TopicStore) -> None:
        self._store = store
        self._rows: dict[int, int] | None = None
        self._matrix = np.zeros((_FIRST_ROWS, TOPIC_DIMS), dtype=np.float32)
        self._norms = np.ones(_FIRST_ROWS, dtype=np.float32)

    def cosines(self, vector: NDArray[np.float32]) -> dict[int, float]:
        """Cosine of a quantised vector to each topic that has an embedding, by slot."""
        rows = self._rows if self._rows is not None else self._load()
        count = len(rows)
        near = ((self._matrix[:count] @ vector) / (self._norms[:count] * _norm(vector))).tolist()
        # In the order of the topics, not of the rows: of equal ones the same comes first after a restart.
        return {slot: near[rows[slot]] for slot in self._store.index.slots if slot in rows}

    def learn(self, slot: int, vector: NDArray[np.float32]) -> None:
        """Let a user's message move its topic's embedding."""
        topic = self._store.touch(slot)
        topic.weight = min(topic.weight + 1, MEMORY)
        unit = vector / _norm(vector)
        if topic.embedding:
            before = _decode(topic.embedding)
            unit = before * ((topic.weight - 1) / _norm(before)) + unit
        self._keep(slot, topic, unit)

    def merge(self, slot: int, other: Topic) -> None:
        """Let another topic's embedding move one, each by its weight."""
        topic = self._store.touch(slot)
        if not other.embedding:
            return
        taken = _decode(other.embedding)
        mean = taken * (other.weight / _norm(taken))
        if topic.embedding:
            own = _decode(topic.embedding)
            mean = own * (topic.weight / _norm(own)) + mean
        topic.weight = min(topic.weight + other.weight, MEMORY)
        self._keep(slot, topic, mean)

    def forget(self, slot: int) -> None:
        """A topic went."""
        if self._rows is not None and slot in self._rows:
            self._rows = None

    def of(self, slot: int) -> NDArray[np.float32] | None:
        """A topic's quantised embedding."""
        embedding = self._store.topic(slot).embedding
        return _decode(embedding) if embedding else None

    def _keep(self, slot: int, topic: Topic, mean: NDArray[np.float32]) -> None:
        quantised = topic_vector(mean.astype(np.float32))
        if quantised is None:  # opposite vectors cancel out: the embedding stays
            return
        topic.embedding = quantised.astype(np.int8).tobytes()
        if self._rows is not None:
            self._set(self._rows, slot, quantised)

    def _load(self) -> dict[int, int]:
        rows: dict[int, int] = {}
        for slot, topic in self._store.topics():
            if topic.embedding:
                self._set(rows, slot, _decode(topic.embedding))
        self._rows = rows
        return rows

    def _set(self, rows: dict[int, int], slot: int, vector: NDArray[np.float32]) -> None:
        row = rows.setdefault(slot, len(rows))
        if row == len(self._matrix):
            self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
            self._norms = np.concatenate([self._norms, np.ones_like(self._norms)])
        self._matrix[row] = vector
        self._norms[row] = _norm(vector)


def _decode(embedding: bytes) -> NDArray[np.float32]:
    return np.frombuffer(embedding, dtype=np.int8).astype(np.float32)


def _norm(vector: NDArray[np.float32]) -> np.float32:
    return np.float32(float(vector @ vector) ** 0.5)
