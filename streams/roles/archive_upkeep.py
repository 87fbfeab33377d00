"""When the archive's small files are merged."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from time import monotonic

import structlog

from streams.archive.maintenance import maintain
from streams.archive.writer import LakeWriter
from streams.observe.telemetry import metrics
from streams.settings.archive import ArchiveSettings

log = structlog.get_logger(__name__)

_ALL_FILES_EVERY = timedelta(hours=1)
"""How often orphans are looked for and even two small files are merged."""


class Upkeep:
    """Merges now and then.

    Args:
        writer: The archive.
        wanted: How often, and how long replaced files stay.
    """

    def __init__(self, writer: LakeWriter, wanted: ArchiveSettings) -> None:
        self._writer = writer
        self._wanted = wanted
        self._merged_s = monotonic()
        self._merged_all_s: float | None = None

    async def maintain(self) -> None:
        """Merge if it is time. Call it while nothing lands."""
        now_s = monotonic()
        if now_s - self._merged_s < self._wanted.merge_every.total_seconds():
            return
        everything = self._merged_all_s is None or now_s - self._merged_all_s >= _ALL_FILES_EVERY.total_seconds()
        done = await asyncio.to_thread(
            maintain,
            self._writer,
            now=datetime.now(UTC),
            keep_replaced=self._wanted.keep_replaced,
            everything=everything,
        )
        self._merged_s = monotonic()
        if everything:
            self._merged_all_s = self._merged_s
        metrics.counter("archive_upkeep_total", result="done" if done.settled else "not_settled").inc()
        metrics.gauge("archive_unsettled").set(not done.settled)
        metrics.gauge("archive_upkeep_timestamp_seconds").set(datetime.now(UTC).timestamp())
        log.debug("archive_maintained", done=str(done))
