"""Sources of `turntide ops replay --alert`: the topics, or the archive."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import NamedTuple

import duckdb
from aiokafka.structs import ConsumerRecord

from jobs.replay.archive_read import landed, skipped
from jobs.shared.log_read import log_extent
from models.errors import ConfigurationError
from models.events import AlertChanged
from models.events.topics import ALERTS, TURNS
from models.wire.codec import encode
from streams.kafka.client import read_to_end
from streams.kafka.records import readable
from streams.settings import Settings


class Recorded(NamedTuple):
    """A change of an alert as it was emitted."""

    event: AlertChanged
    value: bytes
    """JSON, as the topic has it."""


class AlertSource(ABC):
    """Changes of alerts, and the log that they came of."""

    @abstractmethod
    async def changes(self, alert_id: str) -> list[Recorded]:
        """Every change of every alert of the session that has this one, in log order; none if it is not known."""

    @abstractmethod
    async def count(self, partition: int, before: int) -> int:
        """How many records `turns` yields.

        Raises:
            ConfigurationError: The partition is not whole up to there; the message says what to do.
        """

    @abstractmethod
    def turns(self, partition: int, before: int) -> AsyncIterator[ConsumerRecord]:
        """Records of a partition of `turns.v1` from its beginning up to an offset."""

    async def erased(self, partition: int, before: int) -> int:  # noqa: ARG002 - the archive's alone
        """How many records below an offset were erased since; a topic that lost some is cut off, and not whole."""
        return 0


class TopicSource(AlertSource):
    """The topics themselves."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def changes(self, alert_id: str) -> list[Recorded]:
        """See `AlertSource`. The alerts are read twice: to find the session, and then its partition alone."""
        found = await self._first(alert_id)
        if found is None:
            return []
        session = found.app_id, found.session_id
        return [
            each
            async for each in self._alerts(found.source.partition)
            if (each.event.app_id, each.event.session_id) == session
        ]

    async def _first(self, alert_id: str) -> AlertChanged | None:
        async with aclosing(self._alerts(None)) as alerts:
            async for each in alerts:
                if each.event.alert_id == alert_id:
                    return each.event
        return None

    async def _alerts(self, partition: int | None) -> AsyncGenerator[Recorded, None]:
        topic = ALERTS.full_name(self._settings.topic_prefix)
        async for record in read_to_end(self._settings.kafka, topic, only=partition):
            event = readable(ALERTS, record)
            if isinstance(event, AlertChanged):
                yield Recorded(event, record.value)

    async def count(self, partition: int, before: int) -> int:
        """See `AlertSource`."""
        start, end = (await log_extent(self._settings, TURNS)).get(partition, (0, 0))
        topic = TURNS.full_name(self._settings.topic_prefix)
        if end < before:
            raise ConfigurationError(
                f"{topic}-{partition} ends at offset {end}, the alert came of one up to {before - 1}: the topic is not "
                "the one it was raised on"
            )
        if start > 0:
            raise ConfigurationError(
                f"retention has removed what {topic}-{partition} held below offset {start}: use --archive"
            )
        return before

    def turns(self, partition: int, before: int) -> AsyncIterator[ConsumerRecord]:
        """See `AlertSource`."""
        topic = TURNS.full_name(self._settings.topic_prefix)
        return read_to_end(self._settings.kafka, topic, only=partition, before=before)


class ArchiveSource(AlertSource):
    """The archive."""

    def __init__(self, settings: Settings, lake: duckdb.DuckDBPyConnection) -> None:
        self._topic = TURNS.full_name(settings.topic_prefix)
        self._lake = lake

    async def changes(self, alert_id: str) -> list[Recorded]:
        """See `AlertSource`."""
        from streams.archive.inputs import archived_changes

        return [Recorded(event, encode(event)) for event in archived_changes(self._lake, alert_id)]

    async def count(self, partition: int, before: int) -> int:
        """See `AlertSource`."""
        from streams.archive.inputs import archived_count
        from streams.archive.schema import EXPIRED

        start, end = landed(self._lake, self._topic, partition)
        if end < before:
            raise ConfigurationError(
                f"the archive holds {self._topic}-{partition} up to offset {end} only, the alert came of one up to "
                f"{before - 1}: let `turntide worker archive` catch up"
            )
        if start > 0 or skipped(self._lake, self._topic, partition, before).get(EXPIRED):
            raise ConfigurationError(
                f"the archive lacks records of {self._topic}-{partition} below offset {before}: retention removed them "
                "before they were archived. What came of them cannot be made again"
            )
        return archived_count(self._lake, only=partition, before=before)

    async def erased(self, partition: int, before: int) -> int:
        """See `AlertSource`."""
        from streams.archive.schema import ERASED

        return skipped(self._lake, self._topic, partition, before).get(ERASED, 0)

    async def turns(self, partition: int, before: int) -> AsyncIterator[ConsumerRecord]:
        """See `AlertSource`."""
        from streams.archive.inputs import archived_inputs

        for record in archived_inputs(self._lake, self._topic, only=partition, before=before):
            yield record
