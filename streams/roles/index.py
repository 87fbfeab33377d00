"""Role index: turns embedded in batches and upserted to the vector store, so that similar past turns are found.

At-least-once into an upsert keyed by `session_turn`: a repeat changes nothing. Its own consumer group: a vector store
that is down holds up the index, never an alert. While the store does not answer the batch is retried here, and the
offset stays where it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain

import structlog
from aiokafka.structs import ConsumerRecord
from fastapi import APIRouter

from models.errors import StoreUnavailable
from models.events import Turn
from models.policy import Policy
from models.topics import TURNS
from streams.api.similar import index_router, similar_router
from streams.intake import decode
from streams.ports import Embedder, TurnScorer, VectorStore
from streams.roles.batch_role import BatchRole
from streams.settings import Settings
from streams.telemetry import metrics, stage
from streams.vectors.session_memory import COLLECTION, SessionVectorMemory

log = structlog.get_logger(__name__)

RETRY_S = 2.0
COUNT_EVERY_BEATS = 15
"""Counting 100,000 points takes 12 ms."""


class IndexRole(BatchRole):
    """Keeps vectors and payloads of turns, and serves reading them over HTTP."""

    name = "index"
    source = TURNS

    def __init__(
        self, settings: Settings, policy: Policy, embedder: Embedder, scorer: TurnScorer, store: VectorStore
    ) -> None:
        super().__init__(settings, http_port=settings.http.index_port)
        self._policy = policy
        self._embedder = embedder
        self._scorer = scorer
        self._store = store
        self._beats = 0
        self._memory = SessionVectorMemory(store, embedder, keep_turns=policy.memory.stored_vectors)

    async def open(self) -> None:
        """Nothing to connect: the store was opened by whoever made it."""

    async def close(self) -> None:
        """Flush and release the store."""
        await self._store.close()

    async def on_assigned(self, partitions: list[int]) -> None:
        """All state is in the store."""

    def routers(self) -> Sequence[APIRouter]:
        """Reading similar and last turns, and how many there are."""
        return (similar_router(self._memory), index_router(self._memory, topic_prefix=self.settings.topic_prefix))

    async def on_records(self, batches: Mapping[int, list[ConsumerRecord]]) -> None:
        """Embed the turns and upsert them; the sessions role makes the dead letters."""
        arrivals = decode(chain.from_iterable(batches.values()), self._policy.intake).arrivals
        turns = [arrival.event for arrival in arrivals if isinstance(arrival.event, Turn)]
        if not turns:
            return
        with stage("embed"):
            vectors = self._embedder.embed([turn.content for turn in turns])
        with stage("score"):
            risks = self._risks(turns)
        while True:
            await self.fence()
            try:
                await self._memory.add_turns(turns, vectors, risks)
            except StoreUnavailable as error:
                log.warning("vector_store_unavailable", partitions=sorted(batches), retry_s=RETRY_S, error=str(error))
                await asyncio.sleep(RETRY_S)
                self.watchdog.stir()  # a store that is down is waited for, not a stall
            else:
                break

    def _risks(self, turns: Sequence[Turn]) -> list[float | None]:
        """The scorer's risk of the roles it scores; an upstream risk is the turn's own."""
        roles = self._policy.risk.scored_roles
        return [
            risk if turn.role in roles else None for turn, risk in zip(turns, self._scorer.score(turns), strict=True)
        ]

    async def on_idle(self) -> None:
        """Report the size of the index now and then; a store that is down is the batch's matter."""
        self._beats += 1
        if self._beats % COUNT_EVERY_BEATS == 1:
            with suppress(StoreUnavailable):
                metrics.gauge("index_points").set(await self._store.count(COLLECTION))
