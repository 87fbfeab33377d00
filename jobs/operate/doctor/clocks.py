"""Clock check: this machine's clock, the broker's, and those of the roles that answer.

Kafka tells nobody what time it is. What can be seen is the time that it gave the last turns: one that lies ahead of
this clock says that this one is behind. A broker that is behind shows in no record; the roles' clocks show by the
`Date` of their answers, in either direction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import httpx
from aiokafka import TopicPartition

from jobs.operate.doctor.roles_asked import asked
from jobs.operate.doctor.verdict import Status, Verdict
from models.errors import ConfigurationError, StoreUnavailable
from models.events.topics import TURNS
from streams.kafka.client import consumer, require_topic
from streams.settings import KafkaSettings, Settings

_RESOLUTION = timedelta(seconds=1)
"""Of the header `Date`."""
_APPENDED = 1
"""Kafka's timestamp type of a record that the broker stamped."""
_FETCH_MS = 2_000


def check_clock(settings: Settings) -> Verdict:
    """Whether anybody's clock differs from this one's by more than `max_clock_skew`."""
    at_most, compared, wrong = settings.max_clock_skew, [], []
    for name, ahead in (*_roles(settings), *_broker(settings)):
        compared.append(name)
        if abs(ahead) > at_most:
            wrong.append(
                f"{name} is {abs(ahead).total_seconds():.0f} s {'ahead' if ahead > timedelta(0) else 'behind'}"
            )
    if wrong:
        return Verdict(
            Status.FAIL,
            f"{', '.join(wrong)} of this machine's clock; at most {at_most.total_seconds():g} s",
            "let NTP set the clock of the one that is wrong (`timedatectl` or `chronyc tracking` tells which): "
            "windows, time-outs and retention go by it",
        )
    if not compared:
        return Verdict(Status.OK, "nobody to compare with: no role answers, no turn stands in the log")
    return Verdict(Status.OK, f"within {at_most.total_seconds():g} s of {', '.join(compared)}")


def now() -> datetime:
    """This machine's clock."""
    return datetime.now(UTC)


def _roles(settings: Settings) -> Iterator[tuple[str, timedelta]]:
    """Each role that answers, and how far its clock is ahead."""
    with httpx.Client(trust_env=False, timeout=2.0) as client:
        for role, url in asked(settings.http):
            with suppress(httpx.HTTPError, ValueError, KeyError):
                began = now()
                answer = client.get(f"{url}/livez")
                theirs = parsedate_to_datetime(answer.headers["date"])
                yield f"role {role}", _ahead(theirs, began, now())


def _ahead(theirs: datetime, began: datetime, ended: datetime) -> timedelta:
    """How far a clock is ahead that was read between two readings of ours, to the second below.

    >>> at = datetime(2026, 1, 1, tzinfo=UTC)
    >>> _ahead(at, at, at + timedelta(seconds=2)), _ahead(at + timedelta(minutes=1), at, at)
    (datetime.timedelta(0), datetime.timedelta(seconds=60))
    """
    if theirs + _RESOLUTION < began:
        return theirs + _RESOLUTION - began
    return max(theirs - ended, timedelta(0))


def _broker(settings: Settings) -> Iterator[tuple[str, timedelta]]:
    """Whether the broker has stamped a turn ahead of this clock."""
    with suppress(StoreUnavailable, ConfigurationError):  # `broker` and `topics` tell of it
        newest = asyncio.run(_newest_append(settings.kafka, TURNS.full_name(settings.topic_prefix)))
        if newest is not None:
            yield "the broker", max(newest - now(), timedelta(0))


async def _newest_append(kafka: KafkaSettings, topic: str) -> datetime | None:
    """When the broker received the last record of any partition; none in an empty topic."""
    places = [TopicPartition(topic, number) for number in await require_topic(kafka, topic)]
    async with consumer(kafka) as client:
        client.assign(places)
        ends, starts = await client.end_offsets(places), await client.beginning_offsets(places)
        filled = [place for place in places if ends[place] > starts[place]]
        for place in filled:
            client.seek(place, ends[place] - 1)
        times = [
            record.timestamp
            for place in filled
            for record in (await client.getmany(place, timeout_ms=_FETCH_MS)).get(place, [])
            if record.timestamp_type == _APPENDED
        ]
    return datetime.fromtimestamp(max(times) / 1000, UTC) if times else None
