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


def topic_vector(vector: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """A message's vector as topics compare it, `(256,)`; None for a zero vector."""
    return quantise(vector, TOPIC_DIMS)


class TopicVectors:
    """The embeddings of a session's topics, `(n_topics, 256)`, read when first needed."""

    def __init__(self, store: TopicStore) -> None:
        self._store = store
        self._slots: list[int] | None = None
        self._matrix = np.zeros((0, TOPIC_DIMS), dtype=np.float32)
        self._norms = np.zeros(0, dtype=np.float32)

    def cosines(self, vector: NDArray[np.float32]) -> dict[int, float]:
        """Cosine of a quantised vector to each topic that has an embedding."""
        if self._slots is None:
            self._load()
        if not self._slots:
            return {}
        norm = np.float32(float(vector @ vector) ** 0.5)
        return dict(zip(self._slots, (self._matrix @ vector / (self._norms * norm)).tolist(), strict=True))

    def learn(self, slot: int, vector: NDArray[np.float32]) -> None:
        """Let a user's message move its topic's embedding."""
        topic = self._store.touch(slot)
        topic.weight = min(topic.weight + 1, MEMORY)
        unit = vector / _norm(vector)
        if topic.embedding:
            before = _decode(topic.embedding)
            unit = before / _norm(before) * (topic.weight - 1) + unit
        self._keep(topic, unit)

    def merge(self, slot: int, other: Topic) -> None:
        """Let another topic's embedding move one, each by its weight."""
        topic = self._store.touch(slot)
        if not other.embedding:
            return
        mean = _decode(other.embedding) / _norm(_decode(other.embedding)) * other.weight
        if topic.embedding:
            own = _decode(topic.embedding)
            mean = own / _norm(own) * topic.weight + mean
        topic.weight = min(topic.weight + other.weight, MEMORY)
        self._keep(topic, mean)

    def changed(self) -> None:
        """Topics came or went: read them again."""
        self._slots = None

    def of(self, slot: int) -> NDArray[np.float32] | None:
        """A topic's quantised embedding."""
        embedding = self._store.topic(slot).embedding
        return _decode(embedding) if embedding else None

    def _keep(self, topic: Topic, mean: NDArray[np.float32]) -> None:
        quantised = topic_vector(mean.astype(np.float32))
        if quantised is not None:  # opposite vectors cancel out: the embedding stays
            topic.embedding = quantised.astype(np.int8).tobytes()
            self._slots = None

    def _load(self) -> None:
        found = [(slot, topic.embedding) for slot, topic in self._store.topics() if topic.embedding]
        self._slots = [slot for slot, _ in found]
        self._matrix = _decode(b"".join([embedding for _, embedding in found])).reshape(-1, TOPIC_DIMS)
        self._norms = np.sqrt(np.einsum("ij,ij->i", self._matrix, self._matrix))


def _decode(embedding: bytes) -> NDArray[np.float32]:
    return np.frombuffer(embedding, dtype=np.int8).astype(np.float32)


def _norm(vector: NDArray[np.float32]) -> np.float32:
    return np.float32(float(vector @ vector) ** 0.5)
