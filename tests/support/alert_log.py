"""A log of one partition in which a conversation escalates among others, folded in memory, as the commands read it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from aiokafka.structs import ConsumerRecord

from jobs.replay.alert import AlertCompared, Recorded, TopicSource, replay_alert
from jobs.replay.command import folding
from models.events import AlertChanged, InputEvent, SessionEnded
from models.events.topics import ALERTS, TURNS
from models.policy import ModePolicy, ModeThreshold, Policy
from models.policy.escalation import CombinationModel, EscalationPolicy
from models.risk.scorer import RuleScorer
from models.wire.codec import encode
from streams.archive.catalog import paths_of
from streams.archive.writer import LakeWriter
from streams.kafka.records import record_of_input
from streams.oracle.replay import FoldRules, SessionReplay
from streams.settings import Settings, load_settings
from streams.state import policy_versions as versions
from tests.support.lake_records import NOW, PREFIX, RECEIVED, buffer_of, turn
from tests.support.zero_embedder import NoEmbedder

TOPIC = TURNS.full_name(PREFIX)
SESSION = "rising"
RISKS = (0.1, 0.2, 0.5, 0.7, 0.8, 0.95, 0.9)

POLICY = Policy()
EARLIER = Policy(
    version="earlier",
    modes=ModePolicy(
        watch=ModeThreshold(enter=0.6, leave=0.5),
        elevated=ModeThreshold(enter=0.8, leave=0.7),
        critical=ModeThreshold(enter=0.9, leave=0.8),
    ),
)
"""Raises later than the default one."""
LEARNT = Policy(
    version="learnt",
    escalation=EscalationPolicy(
        model=CombinationModel(name="model-1", base=-41_237, weights={"level": 99_991, "information_gathering": 27_777})
    ),
)
"""Its calibrated combination judges, by weights that the kept file has."""


def escalating() -> list[InputEvent]:
    """A conversation whose upstream risks rise until it ends, and two calm ones around it."""
    events: list[InputEvent] = []
    for number, risk in enumerate(RISKS):
        events += [
            turn(number, session_id="calm-1"),
            turn(number, session_id=SESSION, risk=risk),
            turn(number, session_id="calm-2", risk=0.05),
        ]
    ended = NOW + timedelta(minutes=1)
    return [*events, turn(7, session_id="calm-1"), SessionEnded(session_id=SESSION, timestamp=ended)]


def consumed(events: Sequence[InputEvent]) -> list[ConsumerRecord]:
    """The events at the offsets from 0 on."""
    at_ms = int(RECEIVED.timestamp() * 1000)
    return [record_of_input(event, TOPIC, offset=offset, at_ms=at_ms) for offset, event in enumerate(events)]


LOG = consumed(escalating())


def alerts_of(log: Sequence[ConsumerRecord], *rules: tuple[int, Policy]) -> list[AlertChanged]:
    """Alerts that a role emits which folds the log by these policies, each from its offset on."""
    ruled = [FoldRules(offset, policy, RuleScorer()) for offset, policy in rules]
    replay = SessionReplay(rules[0][1], NoEmbedder(), RuleScorer(), lambda _: ruled)
    replay.fold(0, log)
    return [event for event in replay.result().outputs.values() if isinstance(event, AlertChanged)]


def archive(settings: Settings, events: Sequence[InputEvent], alerts: Sequence[AlertChanged]) -> None:
    """Land a log and what came of it."""
    writer = LakeWriter(paths_of(settings))
    writer.land(buffer_of(events), now=NOW)
    writer.land(buffer_of(alerts, topic=ALERTS), now=NOW)
    writer.close()


class MemorySource(TopicSource):
    """Log and alerts in memory."""

    def __init__(self, log: Sequence[ConsumerRecord], alerts: Sequence[AlertChanged]) -> None:
        self.log = log
        self.recorded = [Recorded(alert, encode(alert)) for alert in alerts]

    async def changes(self, alert_id: str) -> list[Recorded]:
        """All of the session's."""
        sessions = {each.event.session_id for each in self.recorded if each.event.alert_id == alert_id}
        return [each for each in self.recorded if each.event.session_id in sessions]

    async def count(self, partition: int, before: int) -> int:
        """As many as offsets."""
        assert partition == 0
        return before

    async def turns(self, partition: int, before: int) -> AsyncIterator[ConsumerRecord]:
        """From the first record on."""
        assert partition == 0
        for each in self.log[:before]:
            yield each


def kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A data directory in which `POLICY` is kept, of a process without vectors."""
    monkeypatch.setattr("jobs.replay.alert.stream_embedder_of", lambda _: NoEmbedder())
    monkeypatch.setattr("streams.wiring.local_embedder", lambda _: NoEmbedder)
    settings = load_settings(topic_prefix=PREFIX, data_dir=folder)
    versions.keep(settings, POLICY, None, "rules")
    return settings


def again(
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    alerts: Sequence[AlertChanged],
    *,
    log: Sequence[ConsumerRecord] = LOG,
    policy_file: Path | None = None,
    scorer: str | None = "rules",
) -> AlertCompared:
    """The first of these alerts, made again."""
    monkeypatch.setattr("jobs.replay.alert.TopicSource", lambda _: MemorySource(log, alerts))
    return asyncio.run(replay_alert(settings, alerts[0].alert_id, policy_file=policy_file, scorer=scorer, bar=folding))
