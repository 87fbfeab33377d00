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
    """All conditions of at least one of the mappings hold; the field name of this entry is ignored."""

    of: "tuple[Where, ...]"


@dataclass(frozen=True, slots=True)
class Keys:
    """The point has one of these keys; the field name of this entry is ignored."""

    of: Sequence[str]


Condition = str | int | float | None | tuple[int, int] | tuple[datetime, datetime] | tuple[str, ...] | Either | Keys
"""Condition on a payload field: equal to the value, inside the closed range `(low, high)`, or one of these strings.
Refused: booleans, which Qdrant Edge treats as integers and would not find, and an empty tuple."""
Where = Mapping[str, Condition]
"""Conditions by field; all must hold."""
Query = NDArray[np.float32] | SparseVector
"""A vector for similarity, or the terms of a lexical query."""


class Embedder(Protocol):
    """Texts to vectors. Deterministic, and a text's vector does not depend on its neighbours in the batch."""

    name: str
    dim: int
    topic_similarity: float
    """Cosine above which a message joins a topic, unless the policy sets it; measured for this embedder."""
    episode_distance: float
    """Cosine distance up to which an episode is relevant to a question; measured for this embedder (source: 0.4)."""
    is_quick: bool = False
    """Whether embedding a text takes less time than handing it to a thread."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed a batch. Empty text gives a zero row. Text of any length is accepted and truncated at the end."""

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed search queries. Default: as `embed`; models that distinguish queries from texts override it."""
        return self.embed(texts)

    async def embed_query(self, text: str) -> Vectors:
        """Embed one search query, `(dim,)`, without blocking the event loop if the embedder is slow."""
        embed, texts = self.embed_queries, [text]
        vectors: Vectors = embed(texts) if self.is_quick else await asyncio.to_thread(embed, texts)
        row: Vectors = vectors[0]
        return row


class TurnReader(Protocol):
    """Another reader of single user turns, whose readings are a signal of their own (`models.risk.reading`)."""

    data: bytes
    """Its file: what was read with it can be read again."""

    def readings(self, texts: Sequence[str], vectors: Vectors | None = None) -> Sequence[float]:
        """Log-odds that the intent of each text is harmful. Deterministic, no state across calls.

        Args:
            texts: As users wrote them.
            vectors: Their embeddings by wordllama; None if unavailable.
        """


class TurnScorer(Protocol):
    """Risk of single turns, 0-1. If a model judges sessions, risks from producers do not replace it."""

    name: str
    """Name with version; alerts and replays identify a scorer by it."""
    reads: str
    """Name of the embedder whose vectors `score` uses; empty for none."""

    def score(self, turns: Sequence[AnyTurn], vectors: Vectors | None = None) -> Sequence[float]:
        """Risk of each turn. Deterministic, no state across calls.

        Args:
            turns: Turns of any role.
            vectors: Vectors of their contents from the embedder `reads`; None if unavailable.
        """

    def harms(self, turns: Sequence[AnyTurn], vectors: Vectors | None = None) -> Sequence[tuple[int, ...]]:  # noqa: ARG002
        """Kinds of harm of each turn, per cent in the order of `Harm`; empty if the scorer does not classify them."""
        return [()] * len(turns)

    @property
    def reader(self) -> TurnReader | None:
        """The second reader of user turns; None if not configured."""
        return None


class Judge(Protocol):
    """A slower model that judges the last turns of a session with an alert. Nothing waits for it."""

    name: str
    """Name and version of the model."""

    async def judge(self, turns: Sequence[JudgedTurn], *, within: timedelta) -> float:
        """Probability, 0-1, that the turns are harmful. Any turns are accepted, also none.

        Args:
            turns: Oldest first.
            within: Time limit for all tries together.

        Raises:
            JudgeFailed: No answer, or none in time; message and reason have no text of a turn.
        """

    async def close(self) -> None:
        """Release its resources."""


class Point(msgspec.Struct, frozen=True):
    """A vector with its payload. `key` is a readable id (`session_turn`); stores derive their own ids from it.

    Without `lexical`, lexical search does not find it (`VectorStore.search`). If not `embedded`, only filters on the
    payload find it, and the store uses only the dimension of its vector.
    """

    key: str
    vector: NDArray[np.float32]
    payload: dict[str, PayloadValue]
    lexical: SparseVector | None = None
    embedded: bool = True


class SearchHit(msgspec.Struct, frozen=True):
    """A search result; `score` is the cosine similarity, or BM25. The payload has the requested fields.

    A reader may cache values derived from the payload in `memo`: for a point that the store holds in memory, they stay
    there until the point is rewritten.
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
    """A vector store in a local folder, which may be removed while it is open."""

    def is_gone(self) -> bool:
        """Whether the written files no longer exist."""

    def hold_back(self) -> None:
        """From now on, `upsert` returns as soon as its points are readable; `flush` makes them durable."""

    async def flush(self) -> None:
        """Make everything written so far durable."""


class VectorStore(Protocol):
    """Vectors and payloads with exact filters: every entry of a `where` must hold.

    The first write fixes a collection's dimension and embedder. A collection that was never written is empty.
    All methods raise `models.errors.StoreUnavailable` if the store does not answer, and
    `models.errors.ConfigurationError` if the collection belongs to another embedder. The methods that an erasure needs
    (`count`, `delete`, `collections`, `page`, `forget`) also work on collections of other embedders.
    """

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Write by key; a repeated key replaces the point, also within the batch. Durable on return."""

    async def search(
        self,
        collection: str,
        query: Query,
        *,
        where: Where,
        top_k: int,
        fields: Sequence[str] | None = None,
    ) -> list[SearchHit]:
        """Nearest points by cosine, or best by BM25 among those with a term of the query, that match `where`.

        Document frequencies count only points that match `where`, so points of other tenants never change a score.
        `fields` None returns whole payloads. Reading payloads costs more than the search: request few fields or none.

        Raises:
            ConfigurationError: A lexical query to a collection that is older than lexical search.
        """

    async def read(self, collection: str, keys: Sequence[str], *, where: Where) -> dict[str, dict[str, PayloadValue]]:
        """Payloads by key, without points that do not exist or do not match `where`."""

    async def latest(self, collection: str, *, where: Where, by: str, limit: int) -> list[dict[str, PayloadValue]]:
        """Payloads of the matching points with the highest integer field `by`, highest first."""

    async def count(self, collection: str, *, where: Where | None = None) -> int:
        """Exact number of matching points."""

    async def delete(self, collection: str, *, where: Where, below: tuple[str, int] | None = None) -> None:
        """Delete points that match `where` and, if given, whose integer field `below[0]` is less than `below[1]`."""

    async def rename(self, collection: str, keys: Mapping[str, str]) -> None:
        """Rename points, old key to new key; vectors and payloads do not change. Missing points are skipped.

        Durable on return and idempotent. An interrupted call may leave points under both keys.
        """

    async def collections(self) -> list[str]:
        """Names of all written collections, sorted."""

    async def page(self, collection: str, after: str, limit: int) -> tuple[list[StoredPoint], str]:
        """Points in order of ids, beginning at id `after`; and the first id of the next page, empty at the end."""

    async def forget(self, collection: str) -> None:
        """Remove the bytes of deleted and replaced points.

        A store with local files has removed all of them on return. A server removes them later, by itself.
        """

    async def close(self) -> None:
        """Flush and release."""


class KeyWrapper(Protocol):
    """Wraps data keys for storage in a file, with the master key or a key management service that has it."""

    def wrap(self, secret: bytes, app_id: str) -> str:
        """Wrap a data key.

        Raises:
            models.errors.ConfigurationError: The key or service is not configured, refuses, or does not answer.
        """

    def unwrap(self, wrapped: str, app_id: str) -> bytes:
        """Unwrap a data key.

        Raises:
            models.errors.ConfigurationError: As `wrap`, or it was wrapped by another key or for another app.
        """


NO_TRACE_IDS: Mapping[str, str] = {}
"""Trace ids of alerts whose turns have no trace."""


class AlertSink(Protocol):
    """Destination of alerts besides the topic. Raises `models.errors.StoreUnavailable` if not delivered."""

    name: str

    async def deliver(self, alerts: Sequence[AlertChanged], trace_ids: Mapping[str, str] = NO_TRACE_IDS) -> None:
        """Deliver alerts; the receiver must ignore a repeat with the same `id`.

        Args:
            alerts: Alerts in order.
            trace_ids: `id` of an alert change -> trace id (W3C) of the turn that caused it, if it has one.
        """

    async def close(self) -> None:
        """Release connections."""
