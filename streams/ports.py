"""Ports of the shell: one protocol per kind of collaborator.

`streams.wiring` picks among the implementations by settings.
Each port has one contract suite in `tests/contract/` that runs on every implementation.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from models.events import AlertChanged, AnyTurn, JudgedTurn
from models.retrieval.lexical import SparseVector

Vectors = NDArray[np.float32]
"""Shape `(n_texts, dim)`, each row of unit length (or all zero for a text with no known token)."""
PayloadValue = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Either:
    """All conditions of at least one of the mappings hold; the name that this stands under says nothing."""

    of: "tuple[Where, ...]"


@dataclass(frozen=True, slots=True)
class Keys:
    """It is one of these points; the name that this stands under says nothing."""

    of: Sequence[str]


Condition = str | int | float | None | tuple[int, int] | tuple[datetime, datetime] | tuple[str, ...] | Either | Keys
"""What a payload field must be: equal to the value, inside the closed range `(low, high)`, or any of these strings.
Refused: booleans, which Qdrant Edge takes for integers and would not find, and an empty tuple."""
Where = Mapping[str, Condition]
"""Conditions, each of which must hold."""
Query = NDArray[np.float32] | SparseVector
"""A vector to be near to, or words to hold."""


class Embedder(Protocol):
    """Texts to vectors. Deterministic, and a text's vector does not depend on its neighbours in the batch."""

    name: str
    dim: int
    topic_similarity: float
    """Cosine above which a message joins a topic unless the policy says otherwise, measured for this embedder."""
    episode_distance: float
    """Cosine distance up to which an episode bears on a question, measured for this embedder (user memory: 0.4)."""
    is_quick: bool = False
    """Whether a text is embedded sooner than it is handed to a thread."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed a batch. Empty text gives a zero row. Any length is accepted; the head of long text counts."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed what is looked for among texts that `embed` embedded; as these, unless a model tells them apart."""
        return self.embed(texts)

    async def embed_query(self, text: str) -> Vectors:
        """Embed one text that is looked for, `(dim,)`; the event loop goes on where that takes long."""
        embed, texts = self.embed_queries, [text]
        vectors: Vectors = embed(texts) if self.is_quick else await asyncio.to_thread(embed, texts)
        row: Vectors = vectors[0]
        return row


class TurnReader(Protocol):
    """A slower reader of single user turns, whose readings are a signal of their own (`models.risk.reading`)."""

    def readings(self, texts: Sequence[str]) -> Sequence[float]:
        """Log-odds that each text is harmful, read as it is meant. Deterministic, no state across calls."""
        ...


class TurnScorer(Protocol):
    """Risk of single turns, 0-1. Producers' own risks do not replace it where a model judges sessions."""

    name: str
    """With the version: alerts and replays know a scorer by it."""
    reads: str
    """Name of the embedder whose vectors `score` makes use of; empty for none."""

    def score(self, turns: Sequence[AnyTurn], vectors: Vectors | None = None) -> Sequence[float]:
        """Risk of each turn. Deterministic, no state across calls.

        Args:
            turns: Of any role.
            vectors: Of their contents, by the embedder it reads; None where they are not at hand.
        """
        ...

    def harms(self, turns: Sequence[AnyTurn], vectors: Vectors | None = None) -> Sequence[tuple[int, ...]]:  # noqa: ARG002
        """Kinds of harm of each turn, in per cent in the order of `Harm`; empty where the scorer tells none."""
        return [()] * len(turns)

    @property
    def reader(self) -> TurnReader | None:
        """A second reader of user turns beside it; None where there is none."""
        return None


class Judge(Protocol):
    """A slower model that reads the last turns of a session with an alert. Nothing waits for it."""

    name: str
    """Name and version of the model."""

    async def judge(self, turns: Sequence[JudgedTurn], *, within: timedelta) -> float:
        """Probability, 0-1, that the turns are harmful. Any turns are accepted, also none.

        Args:
            turns: Oldest first.
            within: How long it may take, all tries together.

        Raises:
            JudgeFailed: It has no answer, or none in time; neither message nor reason has text of a turn.
        """
        ...

    async def close(self) -> None:
        """Release what it holds."""
        ...


class Point(msgspec.Struct, frozen=True):
    """A vector with its payload. `key` is a readable id (`session_turn`); stores derive their own from it.

    Without `lexical` no word of it is found (`VectorStore.search`). One that is not `embedded` is found by its payload
    alone: of its vector the store takes the dimension.
    """

    key: str
    vector: NDArray[np.float32]
    payload: dict[str, PayloadValue]
    lexical: SparseVector | None = None
    embedded: bool = True


class SearchHit(msgspec.Struct, frozen=True):
    """A search result; `score` is the cosine similarity, or BM25. The payload has the fields that were asked for.

    What a reader makes of a payload it may leave in `memo`: of a point that the store holds in memory it is found there
    again until the point is written anew.
    """

    key: str
    score: float
    payload: dict[str, PayloadValue]
    memo: dict[str, Any] = {}


class StoredPoint(NamedTuple):
    """A point without its vectors."""

    key: str
    payload: dict[str, PayloadValue]


@runtime_checkable
class LocalStore(Protocol):
    """A vector store in a folder of this machine, which somebody may take away."""

    def is_gone(self) -> bool:
        """Whether what was written can no longer be found there."""
        ...

    def hold_back(self) -> None:
        """From now on `upsert` returns when what it wrote can be read, and `flush` makes it durable."""
        ...

    async def flush(self) -> None:
        """Make everything written so far durable."""
        ...


class VectorStore(Protocol):
    """Vectors and payloads, filtered exactly. Every entry of a `where` must hold.

    A collection takes one dimension and one embedder for ever; nothing is found in one that was never written.
    All methods raise `models.errors.StoreUnavailable` when the store does not answer, and
    `models.errors.ConfigurationError` when the collection belongs to another embedder; but what an erasure needs
    (`count`, `delete`, `collections`, `page`, `forget`) reaches those as well.
    """

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Write by key; the same key again replaces, also within the batch. Durable on return."""
        ...

    async def search(
        self,
        collection: str,
        query: Query,
        *,
        where: Where,
        top_k: int,
        fields: Sequence[str] | None = None,
    ) -> list[SearchHit]:
        """Nearest by cosine, or best by BM25 of those with a term of the query, among the points that match `where`.

        How rare a term is, is counted among the points that match `where`: nobody else's words change a score.
        `fields` None gives whole payloads. Reading them costs more than searching: name what is needed, or nothing.

        Raises:
            ConfigurationError: Words are asked of a collection that was made before there was lexical search.
        """
        ...

    async def read(self, collection: str, keys: Sequence[str], *, where: Where) -> dict[str, dict[str, PayloadValue]]:
        """Payloads by key; keys of points that are not there, or do not match `where`, are missing."""
        ...

    async def latest(self, collection: str, *, where: Where, by: str, limit: int) -> list[dict[str, PayloadValue]]:
        """Payloads of the matching points with the highest integer field `by`, highest first."""
        ...

    async def count(self, collection: str, *, where: Where | None = None) -> int:
        """Exact number of matching points."""
        ...

    async def delete(self, collection: str, *, where: Where, below: tuple[str, int] | None = None) -> None:
        """Delete what matches `where` and, if given, whose integer field `below[0]` is less than `below[1]`."""
        ...

    async def rename(self, collection: str, keys: Mapping[str, str]) -> None:
        """Give points new keys by their old ones, with vectors and payload as they are; those not there are passed.

        Durable on return, and repeating it changes nothing: a call that is cut short leaves points under both keys.
        """
        ...

    async def collections(self) -> list[str]:
        """Names of all that were written, in order."""
        ...

    async def page(self, collection: str, after: str, limit: int) -> tuple[list[StoredPoint], str]:
        """Points in order of ids, from the one named `after` on; and where the next page begins, empty at the end."""
        ...

    async def forget(self, collection: str) -> None:
        """Give up the bytes of what was deleted or replaced; on return they are gone as far as the store can say.

        A store that keeps its own files leaves no byte of them. A server removes them in its own time.
        """
        ...

    async def close(self) -> None:
        """Flush and release."""
        ...


class KeyWrapper(Protocol):
    """Wraps data keys, so that a file may hold them: the master key, or a key management service that keeps it."""

    def wrap(self, secret: bytes, app_id: str) -> str:
        """A data key as it is kept.

        Raises:
            models.errors.ConfigurationError: What wraps is not named, refuses, or does not answer.
        """
        ...

    def unwrap(self, wrapped: str, app_id: str) -> bytes:
        """The data key again.

        Raises:
            models.errors.ConfigurationError: Likewise, or it was wrapped by another key or for another app.
        """
        ...


NO_TRACE_IDS: Mapping[str, str] = {}
"""Of alerts whose turns are of no producer's trace."""


class AlertSink(Protocol):
    """Where alerts go beside the topic. Raises `models.errors.StoreUnavailable` when not delivered."""

    name: str

    async def deliver(self, alerts: Sequence[AlertChanged], trace_ids: Mapping[str, str] = NO_TRACE_IDS) -> None:
        """Deliver each; a repeat with the same `id` must be harmless for the receiver.

        Args:
            alerts: In order.
            trace_ids: `id` of an alert change -> the trace (W3C) of the turn that caused it, where it has one.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
