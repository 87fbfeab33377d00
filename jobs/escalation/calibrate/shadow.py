"""Shadow mode: traffic, also that of the live topic, judged by a policy that pages nobody."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from datetime import datetime, timedelta
from time import monotonic

from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord
from msgspec import Struct

from jobs.escalation.backtest.contenders import Contender
from jobs.escalation.backtest.figures import span_of
from jobs.escalation.backtest.judging import JudgedSession, judge, selected
from jobs.escalation.backtest.traffic import LabelledTraffic, Opening
from jobs.replay.command import folding
from jobs.shared.progress import Progress, progress_bar
from models.errors import ConfigurationError
from models.events.topics import TURNS
from models.policy import Policy
from streams.kafka.client import consumer, require_topic
from streams.ports import Embedder, TurnScorer
from streams.settings import Settings

_POLL_MS = 500


class ShadowSessions(Struct, frozen=True):
    """Sessions as a policy sees them.

    Attributes:
        traffic: What was judged.
        span: Event time over which it goes; None: times are made up.
        learnt_from: Sources of it that the scorer was trained on.
    """

    traffic: str
    sessions: list[JudgedSession]
    span: timedelta | None
    learnt_from: list[str] = []


class Shadow(Struct, frozen=True):
    """The same traffic, for one policy after another.

    Attributes:
        opening: Gives it.
        embedder: The one that folds sessions.
        scorer: Of turns.
        since: Only sessions that began then or later.
        until: Only sessions that began before.
        watched_for: How long live traffic was read; None: it is not live. Then only sessions count that were seen from
            their first turn (0 or 1): of one that was under way already the score is not known.
    """

    opening: Opening
    embedder: Embedder
    scorer: TurnScorer
    since: datetime | None = None
    until: datetime | None = None
    watched_for: timedelta | None = None

    def judged(self, policy: Policy) -> ShadowSessions:
        """Fold all of it, with a progress bar."""
        contender = Contender(policy, self.scorer)
        with self.opening() as traffic, folding(traffic.count) as progress:
            (judging,) = judge(traffic, [contender], self.embedder, progress)
        found = selected(judging.judged(), since=self.since, until=self.until)
        if self.watched_for is not None:
            return ShadowSessions(traffic.name, [each for each in found if each.first_turn <= 1], self.watched_for)
        if traffic.timed:
            return ShadowSessions(traffic.name, found, span_of(found))
        return ShadowSessions(traffic.name, found, None, contender.learnt_from([each.app_id for each in found]))


def watched(settings: Settings, seconds: float) -> Opening:
    """Read the live topic for some time, and give what came as traffic. Ctrl-C ends it without a result.

    Raises:
        ConfigurationError: There is no such topic, or nothing was said.
        StoreUnavailable: Kafka does not answer.
    """
    with progress_bar("watching, seconds") as progress:
        records = asyncio.run(_read(settings, seconds, progress))
    if not records:
        raise ConfigurationError(f"nothing came in {seconds:g} s: is anybody producing to {TURNS.name}?")
    records.sort(key=lambda record: (record.partition, record.offset))
    return lambda: nullcontext(LabelledTraffic(f"{seconds:g} s of live traffic", records, len(records), timed=True))


async def _read(settings: Settings, seconds: float, progress: Progress) -> list[ConsumerRecord]:
    topic = TURNS.full_name(settings.topic_prefix)
    partitions = [TopicPartition(topic, number) for number in await require_topic(settings.kafka, topic)]
    records: list[ConsumerRecord] = []
    async with consumer(settings.kafka) as client:
        client.assign(partitions)
        for partition, end in (await client.end_offsets(partitions)).items():
            client.seek(partition, end)
        began = monotonic()
        while (passed := monotonic() - began) < seconds:
            left_ms = max(1, round((seconds - passed) * 1000))
            for batch in (await client.getmany(timeout_ms=min(_POLL_MS, left_ms))).values():
                records += batch
            progress(round(monotonic() - began), round(seconds))
    return records
