"""Small traffic with known labels for back-tests, and sessions as they are judged."""

import json
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path

from aiokafka.structs import ConsumerRecord
from msgspec import structs

from jobs.escalation.backtest.judging import JudgedSession, LabelledTraffic, RaisedAlert
from models.events import AlertLabelled, InputEvent, Turn
from streams.kafka.records import record_of_input
from tests.support.lake_records import NOW, turn

TOPIC = "t.turns.v1"
CALM = (0.0, 0.05, 0.0, 0.1, 0.0)
RISING = (0.1, 0.6, 0.8, 0.85, 0.8)
"""Upstream risks that raise an alert at their third turn: a policy wants so much evidence."""
LOUD = (0.1, 0.95, 0.1, 0.1, 0.1)
"""Its second turn alerts alone."""


def conversation(session_id: str, risks: Sequence[float], *, app_id: str = "support", day: float = 0) -> list[Turn]:
    """A user turn for each risk, ten seconds apart, on some day."""
    begins = NOW + timedelta(days=day)
    return [
        structs.replace(
            turn(n, session_id=session_id, app_id=app_id, risk=risk), timestamp=begins + timedelta(seconds=10 * n)
        )
        for n, risk in enumerate(risks)
    ]


def label(session_id: str, *, escalating: bool, day: float = 0) -> AlertLabelled:
    """What somebody says of an alert of the session."""
    at = NOW + timedelta(days=day, minutes=5)
    return AlertLabelled(session_id=session_id, timestamp=at, alert_id="a", escalating=escalating)


def log_of(events: Iterable[InputEvent], *, partition: int = 0) -> list[ConsumerRecord]:
    """The events as records of one partition."""
    return [
        record_of_input(
            event, TOPIC, partition=partition, offset=offset, at_ms=round(event.timestamp.timestamp() * 1000)
        )
        for offset, event in enumerate(events)
    ]


def traffic_of(records: Sequence[ConsumerRecord], *, timed: bool = True) -> LabelledTraffic:
    """Traffic of these records."""
    return LabelledTraffic("test", records, len(records), timed)


def judged(
    session_id: str,
    highest: float,
    *,
    escalating: bool | None = None,
    alert_at: int | None = None,
    turns: int = 10,
    app_id: str = "support",
    day: float = 0,
    first_risk: float = 0.0,
) -> JudgedSession:
    """A session with that highest score; its turns are numbered from 1, and `alert_at` is the turn of its alert."""
    at = NOW + timedelta(days=day)
    alert = None if alert_at is None else RaisedAlert("a", alert_at, alert_at, highest)
    return JudgedSession(
        session_id=session_id,
        app_id=app_id,
        started_at=at,
        ended_at=at + timedelta(minutes=turns),
        first_turn=1,
        turns=turns,
        escalating=escalating,
        highest=highest,
        first_risk=first_risk,
        alerts=() if alert is None else (alert,),
    )


def labelled_file(file: Path, dialogues: Iterable[tuple[str, str, str, Sequence[str]]]) -> Path:
    """A file of dialogues: session, source, label, and what the user says."""
    lines = [
        {
            "session_id": session_id,
            "source": source,
            "label": kind,
            "turns": [{"turn": n, "role": "user", "content": content} for n, content in enumerate(said, start=1)],
        }
        for session_id, source, kind, said in dialogues
    ]
    file.write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
    return file
