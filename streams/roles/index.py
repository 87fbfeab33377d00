"""Role index: turns, topics and users' memories, embedded in batches and upserted to the vector store for readers.

At-least-once into upserts keyed by what they say: a repeat changes nothing. A poll's turns are written before its
topics, so that who reads a topic finds its words; a reader may see turns that no event names yet. A user's facts are
written before the standing that says they are in. Its own consumer group: a vector store that is down holds up the
index, never an alert. While the store does not answer the batch is retried here, and the offset stays where it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TypeVar

import structlog
from aiokafka.structs import ConsumerRecord
from fastapi import APIRouter
from faust.types import TP

from models.errors import StoreUnavailable
from models.events import EpisodeCompressed, FactChanged, Turn, UserMemoryChanged
from models.policy import Policy
from models.topics import CONVERSATION_TOPICS, FACTS, TURNS, USER_EPISODES, Topic
from streams.api.assembly import memory_api
from streams.api.health import Endpoint
from streams.intake import decode, topic_text
from streams.ports import Embedder, TurnScorer, Vectors, VectorStore
from streams.roles.batch_role import BatchRole
from streams.settings import Settings
from streams.telemetry import metrics, stage
from streams.vectors.generations import generation_name
from streams.vectors.session_memory import COLLECTION, SessionVectorMemory
from streams.vectors.topic_memory import TopicMemory, latest_changes
from streams.vectors.user_memory import UserMemory, latest_of

log = structlog.get_logger(__name__)

_Answer = TypeVar("_Answer")
RETRY_S = 2.0
COUNT_EVERY_BEATS = 15
"""Counting 100,000 points takes 12 ms."""


class IndexRole(BatchRole):
    """Keeps vectors and payloads of turns, topics, episodes and facts, and serves reading them over HTTP."""

    name = "index"
    sources = (TURNS, CONVERSATION_TOPICS, FACTS, USER_EPISODES)

    def __init__(
        self, settings: Settings, policy: Policy, embedder: Embedder, scorer: TurnScorer, store: VectorStore
    ) -> None:
        generation = settings.vectors.generation
        super().__init__(settings, http_port=settings.http.index_port, group=generation_name(self.name, generation))
        self._policy = policy
        self._embedder = embedder
        self._scorer = scorer
        self._store = store
        self._beats = 0
        self._caught_up = False
        keep_turns = policy.memory.stored_vectors
        self._memory = SessionVectorMemory(store, embedder, keep_turns=keep_turns)
        self._users = UserMemory(store, embedder)
        self._api = memory_api(store, embedder, policy, settings.http, topic_prefix=settings.topic_prefix)
        self._topics = TopicMemory(
            store, embedder, self._memory, keep_turns=keep_turns, forgotten_after=policy.session.closed_retention
        )

    async def open(self) -> None:
        """Nothing to connect: the store was opened by whoever made it."""

    async def close(self) -> None:
        """Flush and release the store."""
        await self._store.close()

    async def on_assigned(self, partitions: list[int]) -> None:  # noqa: ARG002 - of whichever partitions
        """All state is in the store; readers wait until what is in the log is there too."""
        self._caught_up = False

    def ready(self) -> tuple[bool, str]:
        """As every role, and once what was in the log at the start is indexed."""
        is_ready, reason = super().ready()
        if is_ready and not self._caught_up:
            return False, "indexing what is in the log already"
        return is_ready, reason

    def routers(self) -> Sequence[APIRouter]:
        """Everything that is read: turns, topics, users' memories."""
        return self._api.routers

    def endpoints(self) -> Sequence[Endpoint]:
        """Tools of assistants."""
        return self._api.endpoints

    async def on_records(self, batches: Mapping[TP, list[ConsumerRecord]]) -> None:
        """Embed and upsert; the sessions role makes the dead letters.

        In two steps, so that the store makes everything of a step durable at once: what is rested on, then what rests
        on it (topics on turns, a user's standing on the facts).
        """
        arrivals = decode(self._of(TURNS, batches), self._policy.intake).arrivals
        said = [(arrival.event, arrival.position) for arrival in arrivals if isinstance(arrival.event, Turn)]
        turns = [turn for turn, _ in said]
        changes = latest_changes(self._of(CONVERSATION_TOPICS, batches))
        known = latest_of(FACTS, self._of(FACTS, batches), FactChanged, UserMemoryChanged)
        facts = [(event, offset) for event, offset in known if isinstance(event, FactChanged)]
        standings = [(event, offset) for event, offset in known if isinstance(event, UserMemoryChanged)]
        episodes = latest_of(USER_EPISODES, self._of(USER_EPISODES, batches), EpisodeCompressed)
        texts = [turn.content for turn in turns]
        vectors = await self._embedded(texts + [topic_text(event.title, event.summary) for event, _ in changes])
        of_turns, of_topics = vectors[: len(turns)], vectors[len(turns) :]
        with stage("score"):
            risks = self._risks(turns)
        await asyncio.gather(
            self._answered(partial(self._memory.add_turns, turns, of_turns, risks, [place for _, place in said])),
            self._answered(partial(self._users.add_episodes, episodes)),
            self._answered(partial(self._users.add_facts, facts)),
        )
        await asyncio.gather(
            self._answered(partial(self._topics.add_changes, changes, of_topics)),
            self._answered(partial(self._users.add_standings, standings)),
        )

    def _of(self, topic: Topic, batches: Mapping[TP, list[ConsumerRecord]]) -> Iterable[ConsumerRecord]:
        name = topic.full_name(self.settings.topic_prefix)
        return chain.from_iterable(records for tp, records in batches.items() if tp.topic == name)

    async def _embedded(self, texts: Sequence[str]) -> Vectors:
        """Embeddings, made beside the loop: a model of some size, or one on a server, takes its time."""
        with stage("embed"):
            return await self._answered(partial(asyncio.to_thread, self._embedder.embed, texts))

    async def _answered(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Ask store or embedder, again and again while it does not answer."""
        while True:
            await self.fence()
            try:
                return await ask()
            except StoreUnavailable as error:
                partitions = sorted({tp.partition for tp in self._current})
                log.warning("vector_store_unavailable", partitions=partitions, retry_s=RETRY_S, error=str(error))
                await asyncio.sleep(RETRY_S)
                self.watchdog.stir()  # a store that is down is waited for, not a stall

    def _risks(self, turns: Sequence[Turn]) -> list[float | None]:
        """The scorer's risk of the roles it scores; an upstream risk is the turn's own."""
        roles = self._policy.risk.scored_roles
        return [
            risk if turn.role in roles else None for turn, risk in zip(turns, self._scorer.score(turns), strict=True)
        ]

    async def on_idle(self) -> None:
        """Report the size of the index now and then; a store that is down is the batch's matter."""
        self._caught_up = self._caught_up or not await self._behind()
        self._beats += 1
        if self._beats % COUNT_EVERY_BEATS == 1:
            with suppress(StoreUnavailable):
                metrics.gauge("index_points").set(await self._store.count(COLLECTION))

    async def _behind(self) -> bool:
        """Whether the log holds records that are not indexed."""
        ledger = self.consumer.ledger
        ends = await self.consumer.highwaters(*ledger.places())
        return any((ledger.processed(tp) or 0) < end for tp, end in ends.items())
