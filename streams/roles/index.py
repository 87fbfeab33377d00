"""Role index: turns, topics, memories of users, apps and projects, embedded in batches and upserted for readers.

At-least-once with upserts by content key: a repeat changes nothing. A poll's turns are written before its topics, so
that readers of a topic find its text; readers may see turns that no event names yet. A user's facts, an app's memories
and a project's items are written before the stats that count them (`index_writes`). Erasures come last, and the role
reports what it removed. It has its own consumer group: an unavailable vector store delays the index, never an alert.
While the store does not answer, the role retries the batch and does not commit its offset.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import chain, groupby
from operator import attrgetter
from time import monotonic
from typing import TypeVar, Unpack

import structlog
from aiokafka.structs import ConsumerRecord
from faust.types import TP
from msgspec.structs import replace

from models.entities import REGISTRY
from models.errors import StoreUnavailable
from models.events import DeadLetter, Position, SessionErased, SessionName, TopicChanged, Turn, TurnCorrected, topics
from models.events.erase import ErasedStore, VectorsErased, VectorsErasureDue
from models.partition.sessions import DecodedArrival
from models.policy import Policy
from models.session.turn_numbers import PlacedCorrection
from models.text.language import language_of
from models.wire.codec import encode
from models.wire.envelope import headers_for
from streams.api.assembly import Beside, memory_api
from streams.encryption.keyring import sealer_of
from streams.erase.record import PLACE, recorded
from streams.http.answering import ServedRoute
from streams.http.health import Endpoint
from streams.index import collections as index
from streams.index.collections import latest_of
from streams.index.corrections import TurnCorrections
from streams.index.erasing import VectorErasing
from streams.index.generations import generation_name
from streams.index.sealed import forget_sealed
from streams.index.session_keys import bind_to_apps
from streams.index.session_memory import SessionVectorMemory, TopicMemory, forget_before
from streams.index.turn_numbers import TurnNumbers, erased_up_to
from streams.inference.intake import decode, numbered_arrivals, topic_text, weighed
from streams.kafka.producer import ProducerOnDemand, Record
from streams.masking.records import masker_of
from streams.observe.telemetry import metrics, stage
from streams.ports import Embedder, LocalStore, TurnScorer, VectorStore
from streams.roles.batch_role import HEARTBEAT_S, BatchRole
from streams.roles.index_writes import LAST, RESTED_ON, RESTING, Ask, Write, asks_of, writes_of
from streams.settings import Settings

log = structlog.get_logger(__name__)

_OF_USERS = frozenset({topics.TURNS.name, topics.NUMBERED.name, topics.FACTS.name, topics.USER_EPISODES.name})
_Answer = TypeVar("_Answer")
_STORE_GONE = "the local vector store was removed"
RETRY_S = 2.0
FLUSH_EVERY_S = {"quiet": 5.0, "busy": 60.0}
"""Time between flushes of a local store; quiet: no record for a second. A flush waits for the disk and blocks reads."""
DATA_ERRORS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)
"""Errors of a value that cannot be indexed; any other error stops the role."""
_partition_of = attrgetter("partition")
COUNT_EVERY_BEATS = 15
"""Counting 100,000 points takes 12 ms."""


class IndexRole(BatchRole):
    """Writes vectors and payloads of all memory, and serves reads over HTTP; owns its store."""

    name = "index"
    sources = REGISTRY.indexed_topics

    def __init__(
        self,
        settings: Settings,
        policy: Policy,
        embedder: Embedder,
        scorer: TurnScorer,
        store: VectorStore,
        **beside: Unpack[Beside],
    ) -> None:
        generation = settings.vectors.generation
        super().__init__(settings, http_port=settings.http.index_port, group=generation_name(self.name, generation))
        self._policy = policy
        self._embedder = embedder
        self._scorer = scorer
        self._store = store
        self._local = store if isinstance(store, LocalStore) else None
        self._beats = 0
        self._anew = settings.data_dir / "index-anew"
        """Marker file: exists from the loss of a local store until the offsets are reset."""
        self._caught_up = False
        self._ends_at_start: Mapping[TP, int] | None = None
        self._bound = False
        self._flushed_s = self._took_s = monotonic()
        self._erased: dict[tuple[SessionName, int], int] = {}
        keep_turns = policy.memory.stored_vectors
        self._memory = SessionVectorMemory(store, embedder, keep_turns=keep_turns)
        erasing = Write(LAST, topics.ERASURES, (VectorsErasureDue, VectorsErased), self._erase)
        self._sealer = sealer_of(settings)
        self._keys_erased = True
        """Whether points with erased keys may exist, since this role removed none while it was down."""
        self._mask = masker_of(policy.masking, personal=policy.masking.at_index)
        self._without_masking = replace(policy, masking=replace(policy.masking, secrets=False))
        """Policy for records that are already masked."""
        shown = str if self._mask is None else self._mask.text
        self._numbers = TurnNumbers(store, keep_turns=keep_turns, shown=shown)
        self._producer = ProducerOnDemand(settings)
        self._corrections = TurnCorrections(store, embedder, keep_turns=keep_turns)
        self._topics_read = {topic.full_name(settings.topic_prefix): topic for topic in self.sources}
        self._writes = (*writes_of(store, embedder, policy), erasing)
        self._api = memory_api(
            store,
            embedder,
            policy,
            settings.http,
            topic_prefix=settings.topic_prefix,
            at_end=self._at_end,
            **beside,
        )
        self._topics = TopicMemory(
            store, embedder, self._memory, keep_turns=keep_turns, forgotten_after=policy.session.closed_retention
        )

    async def open(self) -> None:
        """Prepare the store, which is already open; a local store that lost its data is filled from the beginning."""
        if self._local is not None:
            self.app.transport.from_start = self._anew.exists() or not await self._store.collections()
            self._local.hold_back()

    async def close(self) -> None:
        """Flush and release the store."""
        await self._producer.close()
        await self._store.close()

    async def on_assigned(self, partitions: list[int]) -> None:  # noqa: ARG002 - of whichever partitions
        """All state is in the store; the role is ready once it has indexed the log.

        Points of earlier releases get their new keys first; else a repeated turn would be stored twice.
        """
        self._caught_up, self._ends_at_start = False, None
        if not self._bound:
            await self._answered(partial(bind_to_apps, self._store, stir=self.watchdog.stir))
            self._bound = True

    async def settled(self) -> bool:
        """Flush a local store from time to time; records since the last flush are read again after a crash."""
        load = "quiet" if monotonic() - self._took_s >= HEARTBEAT_S else "busy"
        if self._local is None or monotonic() - self._flushed_s < FLUSH_EVERY_S[load]:
            return self._local is None
        await self._answered(self._local.flush)
        self._flushed_s = monotonic()
        return True

    async def refresh_keys(self) -> None:
        """Remove points whose key was erased."""
        if self._sealer is not None and (self._sealer.refresh() or self._keys_erased):
            await self._answered(partial(forget_sealed, self._store, [key.id for key in self._sealer.erased]))
            self._keys_erased = False

    def ready(self) -> tuple[bool, str]:
        """As every role, and only after everything that was in the log at the start is indexed."""
        is_ready, reason = super().ready()
        if self._is_store_gone():
            return False, _STORE_GONE
        if is_ready and not self._caught_up:
            return False, "indexing what is in the log already"
        return is_ready, reason

    def routes(self) -> Sequence[ServedRoute]:
        """Routes of all reads: turns, topics, users' memories."""
        return self._api.routes

    def endpoints(self) -> Sequence[Endpoint]:
        """Tools of assistants."""
        return self._api.endpoints

    def _at_end(self) -> bool | None:
        """Whether the logs of users' memory are indexed to their end; None if other workers read some partitions."""
        if not self._caught_up:
            return False
        lags = {tp: lag for tp, lag in self._lags().items() if self.short_names[tp.topic] in _OF_USERS}
        if len(lags) < sum(n for name, n in self._partitions.items() if self.short_names[name] in _OF_USERS):
            return None
        return not any(lags.values())

    async def on_records(self, batches: Mapping[TP, list[ConsumerRecord]]) -> None:
        """Embed and upsert. Dead letters are the sessions role's task, except those of conflicting turn numbers.

        A record that cannot be indexed is skipped, see `_one_by_one`.
        """
        self._require_store()
        try:
            await self._index(batches)
        except DATA_ERRORS as error:
            log.warning("records_not_indexed", error=type(error).__name__)
            await self._one_by_one(batches)
        self._took_s = monotonic()

    async def _one_by_one(self, batches: Mapping[TP, list[ConsumerRecord]]) -> None:
        """Index record by record and skip those that fail: turns first, erasures last, in the order of `sources`."""
        order = [*self.short_names]
        for tp in sorted(batches, key=lambda tp: order.index(tp.topic)):
            for record in batches[tp]:
                try:
                    await self._index({tp: [record]})
                except DATA_ERRORS as error:
                    topic = self.short_names[tp.topic]
                    metrics.counter("records_skipped_total", topic=topic, reason="unindexable").inc()
                    log.exception(
                        "record_unindexable",
                        topic=topic,
                        partition=tp.partition,
                        offset=record.offset,
                        error=type(error).__name__,
                    )

    async def _index(self, batches: Mapping[TP, list[ConsumerRecord]]) -> None:
        """Index records, in log order for each topic and partition.

        Works in steps, so that the store makes each step durable at once: first referenced points, then points that
        refer to them (topics to turns, stats to facts or memories), then erasures.
        """
        if self._mask is not None:
            batches = {tp: self._mask.records(self._topics_read[tp.topic], each) for tp, each in batches.items()}
        arrivals = decode(self._of(topics.TURNS, batches), self._without_masking).arrivals
        if numbered := numbered_arrivals(self._of(topics.NUMBERED, batches)):
            arrivals = sorted([*arrivals, *numbered], key=lambda each: (each.position.partition, each.position.offset))
        erased = self._forgotten(arrivals)
        said = [e for e in arrivals if not isinstance(e.event, Turn) or self._stays(e.event, e.position)]
        first = await self._answered(partial(self._numbers.first, said, self._erased))
        await self._tell(first.conflicts, "turn_numbers_taken")
        metrics.counter("turn_conflicts_total").inc(len(first.conflicts))
        corrections = [
            PlacedCorrection(each.event, each.position, each.appended_at)
            for each in arrivals
            if isinstance(each.event, TurnCorrected) and self._stays(each.event, each.position)
        ]
        turns = [each.turn for each in first.kept]
        known = self._of(topics.CONVERSATION_TOPICS, batches)
        changes = latest_of(topics.CONVERSATION_TOPICS, known, TopicChanged, key=index.TOPICS.key)
        changes = [each for each in changes if self._stays(each[0], each[0].source)]
        texts = [turn.content for turn in turns]
        texts += [topic_text(event.title, event.summary) for event, _ in changes]
        with stage("embed"):  # in a thread: a large model, or one on a server, is slow
            vectors = await self._answered(partial(asyncio.to_thread, self._embedder.embed, texts))
        of_turns, of_topics = vectors[: len(turns)], vectors[len(turns) :]
        with stage("score"):
            languages = [language_of(turn.content) for turn in turns]
            risks = weighed(turns, of_turns, languages, self._policy.risk, self._embedder, self._scorer)
        places = [each.place for each in first.kept]
        asks: dict[int, list[Ask]] = {
            RESTED_ON: [partial(self._memory.add_turns, turns, of_turns, risks, places, languages)],
            RESTING: [partial(self._topics.add_changes, changes, of_topics)],
            LAST: [partial(forget_before, self._store, erased)],
        }
        for step, ask in asks_of(self._writes, partial(self._of, batches=batches)):
            asks[step].append(ask)
        with stage("upsert"):
            for step in sorted(asks):
                await asyncio.gather(*map(self._answered, asks[step]))
                if step == RESTED_ON:
                    take = partial(self._corrections.take, corrections, first.kept, settled=self._caught_up)
                    await self._tell(await self._answered(take), "corrected_turns_unknown")

    async def _tell(self, letters_of: Iterable[DeadLetter], what: str) -> None:
        """Write dead letters to the partition of their record; a repeat has the same id."""
        topic = topics.DEAD_LETTERS.full_name(self.settings.topic_prefix)
        for partition, letters in groupby(sorted(letters_of, key=_partition_of), key=_partition_of):
            records = [Record(letter.key, encode(letter), headers_for(letter), partition) for letter in letters]
            await self.fence()
            await self._producer.write(topic, b"", records)
            log.warning(what, partition=partition, turns=len(records))

    def _forgotten(self, arrivals: Iterable[DecodedArrival]) -> dict[tuple[SessionName, int], int]:
        """Record erased sessions with their offsets; returns those whose points must be removed at once.

        An index that is being rebuilt also reads earlier records, as long as the log has them. A current index waits
        for the request (`VectorsErasureDue`), and counts what it removes.
        """
        events = [(each.event, each.position) for each in arrivals]
        erased = {
            (SessionName(event.app_id, event.session_id), at.partition): at.offset
            for event, at in events
            if isinstance(event, SessionErased)
        }
        self._erased |= erased
        return {} if self._caught_up else erased

    def _stays(self, event: Turn | TurnCorrected | TopicChanged, place: Position) -> bool:
        """Whether an event from a position in `turns.v1` is later than the session's erasure."""
        session = SessionName(event.app_id, event.session_id)
        return place.offset > erased_up_to(self._erased, session, place.partition)

    async def _erase(self, events: Sequence[tuple[VectorsErasureDue | VectorsErased, int]]) -> None:
        """Remove the subjects of erasures, and report it; a repeat removes nothing more and keeps the report."""
        dues = [event for event, _ in events if isinstance(event, VectorsErasureDue)]
        due_at = {event.request_id: at for event, at in events if isinstance(event, VectorsErasureDue)}
        said = {event.request_id: at for event, at in events if isinstance(event, VectorsErased)}
        if not dues:
            return
        erasing = asyncio.ensure_future(VectorErasing(self._store).erase(dues))
        try:
            while not (await asyncio.wait({erasing}, timeout=RETRY_S))[0]:
                self.watchdog.stir()  # a large store takes minutes, which is no stall
        finally:
            erasing.cancel()
        stores = {due.request_id: answered for due, answered in zip(dues, erasing.result(), strict=True)}
        await self.fence()
        if unsaid := [each for each in stores.items() if said.get(each[0], -1) < due_at[each[0]]]:
            await self._answer(unsaid)

    async def _answer(self, answers: Sequence[tuple[str, list[ErasedStore]]]) -> None:
        """Write the reports of erasures."""
        topic = topics.ERASURES.full_name(self.settings.topic_prefix)
        now = datetime.now(UTC)
        events = [VectorsErased(request_id=request, timestamp=now, stores=stores) for request, stores in answers]
        await self._producer.write(topic, b"", [recorded(event)._replace(partition=PLACE) for event in events])

    def _of(self, topic: topics.Topic, batches: Mapping[TP, list[ConsumerRecord]]) -> Iterable[ConsumerRecord]:
        name = topic.full_name(self.settings.topic_prefix)
        return chain.from_iterable(records for tp, records in batches.items() if tp.topic == name)

    def _is_store_gone(self) -> bool:
        return self._local is not None and self._local.is_gone()

    def _require_store(self) -> None:
        """Stop the role if its store was removed; after a restart it creates a new one and indexes the logs again.

        Raises:
            StoreUnavailable: The store was removed.
        """
        if self._is_store_gone():
            self._anew.parent.mkdir(parents=True, exist_ok=True)
            self._anew.touch()
            raise StoreUnavailable(f"{_STORE_GONE}: when restarted, the role indexes the logs again")

    async def _answered(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Call store or embedder, and retry while it does not answer."""
        while True:
            await self.fence()
            try:
                return await ask()
            except StoreUnavailable as error:
                self._require_store()
                partitions = sorted({tp.partition for tp in self._current})
                metrics.counter("index_retries_total").inc()
                log.warning("vector_store_unavailable", partitions=partitions, retry_s=RETRY_S, error=str(error))
                await asyncio.sleep(RETRY_S)
                self.watchdog.stir()  # waiting for an unavailable store is no stall

    async def on_idle(self) -> None:
        """Report the size of the index from time to time; errors of the store are handled with the next batch."""
        self._require_store()
        self._caught_up = self._caught_up or await self._has_caught_up()
        self._beats += 1
        if self._beats == 1:  # the offsets are set back by now
            self._anew.unlink(missing_ok=True)
        if self._beats % COUNT_EVERY_BEATS == 1:
            with suppress(StoreUnavailable):
                metrics.gauge("index_points").set(await self._store.count(index.TURNS.name))

    def show_lags(self, lags: Mapping[TP, int]) -> None:
        """As every role, and the lag by topic: records that readers may miss."""
        super().show_lags(lags)
        behind = dict.fromkeys((topic.name for topic in self.sources), 0)
        for tp, lag in lags.items():
            behind[self.short_names[tp.topic]] += lag
        for topic, lag in behind.items():
            metrics.gauge("index_lag_records", topic=topic).set(lag)

    async def _has_caught_up(self) -> bool:
        """Whether everything that was in the log at the start is indexed; newer records do not count."""
        consumer = self.consumer
        if self._ends_at_start is None:
            self._ends_at_start = await consumer.highwaters(*consumer.ledger.places())
        return all(consumer.reached(tp, end) for tp, end in self._ends_at_start.items())
