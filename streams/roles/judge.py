"""Role judge: has the last turns of alerts read by a slower model, and sends its answers back to their sessions.

Its own consumer group, reading what the sessions role asks on `judgement-requests.v1`: the built-in alert has gone out
by then, and a judge that is slow or away delays none. An answer goes to `turns.v1` under the session's key, where the
fold weighs the alert anew; one that comes again, because this role died before its offset was committed, sets the same
signal once more. A request that nobody waits for any more is passed over: where there are several of a session the last
has the newest turns, and one that is older than `judge.max_age` comes too late.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

import structlog
from aiokafka.structs import ConsumerRecord
from faust.types import TP

from models.errors import InvalidRecord
from models.events import JudgementRequested, TurnsJudged
from models.events.topics import JUDGEMENTS, TURNS
from models.wire.codec import decode_output, encode
from models.wire.envelope import headers_for
from models.wire.trace_context import carried
from streams.inference.judging import answer
from streams.kafka.producer import Producer, Record, acknowledged
from streams.observe.telemetry import metrics, stage
from streams.ports import Judge
from streams.roles.batch_role import BatchRole
from streams.settings import Settings

log = structlog.get_logger(__name__)

STIR_EVERY_S = 5.0
"""A judge that takes its time is waited for, not a stall."""


class JudgeRole(BatchRole):
    """Has alerts judged.

    Args:
        settings: Which cluster and prefix, how many judgements at once and for how long.
        judge: Who judges.
        now: Seconds since the epoch, as brokers' and producers' clocks have them.
    """

    name = "judge"
    sources = (JUDGEMENTS,)

    def __init__(self, settings: Settings, judge: Judge, *, now: Callable[[], float] = time.time) -> None:
        super().__init__(settings, http_port=settings.http.judge_port)
        self._judge = judge
        self._now = now
        self._producer = Producer(settings)
        self._turns = TURNS.full_name(settings.topic_prefix)
        self._places = asyncio.Semaphore(settings.judge.at_once)
        self._carried: dict[str, Sequence[tuple[str, bytes]]] = {}

    async def open(self) -> None:
        """Connect the producer."""
        await self._producer.start()

    async def close(self) -> None:
        """Disconnect it."""
        await self._producer.stop()

    async def on_assigned(self, partitions: list[int]) -> None:
        """Nothing is kept."""

    async def on_records(self, batches: Mapping[TP, list[ConsumerRecord]]) -> None:
        """Have each session judged that still waits; on return the answers are acknowledged."""
        latest = _latest(chain.from_iterable(batches.values()))
        self._carried = {
            request.session_id: carried(self.traces.get((record.topic, record.partition, record.offset)))
            for request, record in (latest if self.traces else ())
        }
        judging = {asyncio.ensure_future(self._answer(request, record.timestamp / 1000)) for request, record in latest}
        try:
            while judging:
                with stage("answer"):
                    done, judging = await asyncio.wait(
                        judging, timeout=STIR_EVERY_S, return_when=asyncio.FIRST_COMPLETED
                    )
                self.watchdog.stir()
                await self._write([judged for each in done if (judged := each.result()) is not None])
        finally:
            for each in judging:
                each.cancel()

    async def _answer(self, request: JudgementRequested, asked_s: float) -> TurnsJudged | None:
        settings = self.settings.judge
        async with self._places:
            if self._now() - asked_s > settings.max_age.total_seconds():
                metrics.counter("judgements_total", result="expired").inc()
                return None
            return await answer(self._judge, request, within=settings.timeout)

    async def _write(self, answers: Iterable[TurnsJudged]) -> None:
        by_partition: dict[int, list[Record]] = {}
        for judged in answers:
            key = judged.session_id.encode()
            place = await self._producer.partition_of(self._turns, key)
            headers = [*headers_for(judged), *self._carried.get(judged.session_id, ())]
            by_partition.setdefault(place, []).append(Record(key, encode(judged), headers))
        if not by_partition:
            return
        await self.fence()
        with stage("outputs"):
            pending = []
            for partition, records in by_partition.items():
                pending += await self._producer.write(self._turns, partition, records)
            await acknowledged(pending)


def _latest(records: Iterable[ConsumerRecord]) -> list[tuple[JudgementRequested, ConsumerRecord]]:
    """The last request of each session that can be read, and its record.

    The topic is the sessions role's own, so anything else is named in the log and left.
    """
    found: dict[str, tuple[JudgementRequested, ConsumerRecord]] = {}
    for record in records:
        try:
            event = decode_output(JUDGEMENTS, record.value or b"")
        except InvalidRecord as error:
            log.warning("request_unreadable", partition=record.partition, offset=record.offset, reason=error.reason)
            continue
        if not isinstance(event, JudgementRequested):
            continue
        if event.session_id in found:
            metrics.counter("judgements_total", result="superseded").inc()
        found[event.session_id] = event, record
    return list(found.values())
