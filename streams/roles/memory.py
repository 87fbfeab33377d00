"""Role memory: what changes memories of users, apps and projects in; what became of them out.

Start reading at `models/user/fold.py`, `models/app/fold.py` and `models/project/fold.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from time import monotonic, perf_counter
from typing import Final

import structlog
from aiokafka.structs import ConsumerRecord

from models.app.work import FAILURES
from models.entities import entity_key
from models.events import (
    AppMemoriesCompacted,
    AppMemoryChanged,
    AppMemorySkipped,
    CompactionRequested,
    MemoryRequested,
    OutputEvent,
    Position,
    space_key,
)
from models.events.topics import COMMANDS, MEMORY_STATE
from models.partition.commands import FOLDS, MemoryPartitionFold
from models.partition.log_fold import PartitionFolded, Parts
from models.policy import Policy
from models.state.entity import DueEntity
from models.wire.arrival import Command
from models.wire.codec import encode
from models.wire.envelope import headers_for
from streams.inference.intake import Decoded, decode_commands
from streams.kafka.producer import Record, acknowledged
from streams.observe.telemetry import metrics
from streams.roles.folding_role import FoldingRole
from streams.settings import Settings

log = structlog.get_logger(__name__)
DUE_PER_BEAT = 100
"""Spaces, and projects, of a partition that are told within a second that their work can go on."""
REMIND_AGAIN_S: Final = 30.0
"""What was told takes a moment to come back, and the broker's clock may be behind."""


class MemoryRole(FoldingRole[Command, MemoryPartitionFold]):
    """Folds every user, every space of memories and every project of the partitions that this worker owns."""

    name = "memory"
    sources = (COMMANDS,)
    changelog = MEMORY_STATE

    def __init__(self, settings: Settings, policy: Policy) -> None:
        super().__init__(settings, policy, http_port=settings.http.memory_port)
        self._reminders = Reminders(policy.apps.answer_within)

    def decode(self, batches: Mapping[int, list[ConsumerRecord]]) -> dict[int, Decoded[Command]]:
        """Decoded and checked."""
        policy, folds, floods = self.policy, self.folds, self.floods
        return {
            n: decode_commands(records, policy, above=folds[n].offset, flood=floods[n])
            for n, records in batches.items()
        }

    def new_fold(self, entities: Mapping[str, Parts]) -> MemoryPartitionFold:
        """Users, spaces and projects of one partition."""
        return MemoryPartitionFold(entities, self.policy, seconds=perf_counter)

    def usable(self, records: list[ConsumerRecord]) -> list[Position]:
        """What can be decoded."""
        return [command.position for command in decode_commands(records, self.policy).arrivals]

    def count(self, number: int, folded: PartitionFolded) -> None:
        """Requests that go out, and what memories of apps cost."""
        for event in folded.outputs:
            if isinstance(event, MemoryRequested | CompactionRequested):
                self._reminders.asked(event, monotonic())
            log_app_memory(event)
        fold = self.folds[number]
        seconds, spent = fold.take_spent()
        metrics.counter("app_memory_work_seconds_total").inc(seconds)
        for work, units in spent.items():
            metrics.counter("app_memory_energy_units_total", cause=work).inc(units)
        while fold.shared.held:
            budget, pieces = fold.shared.held.popitem()
            metrics.counter("app_memory_held_total", cause=budget).inc(pieces)

    def show_partition(self, number: int) -> None:
        """What waits, and how much of everything there is."""
        fold, partition = self.folds[number], str(number)
        for progress in fold.progress.values():
            for gauge, total in progress.totals.items():
                metrics.gauge(gauge, partition=partition).set(total)

    async def on_idle(self) -> None:
        """Go on with work of spaces that waited for energy, or in vain for an answer, and of projects."""
        now, pending = datetime.now(UTC), []
        topic = COMMANDS.full_name(self.settings.topic_prefix)
        for number, fold in self.owned_folds():
            events = [
                remind(due, now)
                for kind, progress in fold.progress.items()
                if (remind := FOLDS[kind].remind) is not None
                for due in self._reminders.choose(progress.due(now), monotonic(), DUE_PER_BEAT)
            ]
            records = [Record(entity_key(event).encode(), encode(event), headers_for(event)) for event in events]
            pending += await self.producer.write(topic, number, records)
        await acknowledged(pending)


def log_app_memory(event: OutputEvent) -> None:
    """Log what became of a memory of an app (app memory, Logging), without a word of it: a failure as a warning."""
    match event:
        case AppMemoryChanged(cause="created"):
            log.debug("app_memory_created", app_id=event.app_id, session_id=event.session_id, memory_id=event.memory_id)
        case AppMemoriesCompacted():
            log.debug(
                "app_memories_compacted",
                app_id=event.app_id,
                action=event.action,
                memory_id=event.target_memory_id,
                decided_by=event.decided_by,
            )
        case AppMemorySkipped() if event.reason in FAILURES:
            log.warning("app_memory_skipped", app_id=event.app_id, session_id=event.session_id, reason=event.reason)


class Reminders:
    """Reminders of due work: not too often, and none before there was time to answer.

    Times are of a clock that only goes on, in seconds.

    A worker that was away folds an hour of its log in a moment: by the log's own clock every answer is overdue then,
    though nobody had time to give it. So the time to answer begins when the request goes out, or, of requests of
    before, when this worker first sees that they are overdue.

    Args:
        answer_within: Time to answer.
    """

    def __init__(self, answer_within: timedelta) -> None:
        self._answer_within_s = answer_within.total_seconds()
        self._asked: dict[str, float] = {}
        self._told: dict[DueEntity, float] = {}

    def asked(self, request: MemoryRequested | CompactionRequested, now_s: float) -> None:
        """A request goes out."""
        self._asked[entity_key(request)] = now_s

    def choose(self, due: Iterable[DueEntity], now_s: float, most: int) -> list[DueEntity]:
        """Those that are reminded now, at most so many; the others with a later call."""
        self._forget(now_s)
        ripe = [each for each in due if each not in self._told and self._had_time(each, now_s)][:most]
        self._told.update(dict.fromkeys(ripe, now_s))
        return ripe

    def _had_time(self, space: DueEntity, now_s: float) -> bool:
        if not space.awaits_answer:
            return True
        asked_s = self._asked.setdefault(space_key(space.app_id, space.name), now_s)
        return now_s - asked_s >= self._answer_within_s

    def _forget(self, now_s: float) -> None:
        kept_s = self._answer_within_s + 2 * REMIND_AGAIN_S
        self._told = {each: told_s for each, told_s in self._told.items() if now_s - told_s < REMIND_AGAIN_S}
        self._asked = {key: asked_s for key, asked_s in self._asked.items() if now_s - asked_s < kept_s}
