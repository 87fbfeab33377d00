"""Role judge beside the sessions role: the alert is out before the judge answers, and the answer changes it."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from jobs.shared.sending import send_to_turns
from models.events import AlertChanged, AlertStatus, Mode, Role, Severity
from models.events.topics import ALERTS, COMMANDS, JUDGEMENTS, TURNS
from streams.kafka.producer import Record
from streams.observe.tracing import tracing
from streams.settings import Settings, TelemetrySettings
from streams.settings.judge import GuardServerSettings, JudgeSettings
from tests.support.fault_driver import events, recorded, records_on, running, said, until
from tests.support.openai_stand_in import StandIn, standing_in
from tests.support.traced import HEADER, headers_on, traced

PARTITIONS = 1
WITHIN_S = 60
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
ALWAYS_ELEVATED = """
[escalation.model]
name = "test"
base = 4_000
[escalation.model.weights]
[alerts]
min_evidence_turns = 0
renotify_after = "PT1M"
"""
"""Log-odds of 0.4 whatever is said: a probability of 0.6, a warning."""


@pytest.fixture
def asking(settings: Settings, tmp_path: Path) -> Callable[..., Settings]:
    """Settings with a policy that always alerts, and a judge at a model's address."""
    policy = tmp_path / "policy.toml"
    policy.write_text(ALWAYS_ELEVATED)

    def judged_by(model: StandIn, timeout_s: float = 20.0) -> Settings:
        server = GuardServerSettings(base_url=model.base_url, model="guard")
        judge = JudgeSettings(kind="openai", timeout=timedelta(seconds=timeout_s), openai=server)
        return settings.model_copy(update={"policy_file": policy, "judge": judge})

    return judged_by


def turns(first: int, count: int) -> list[Record]:
    """The assistant speaks first; its user asks about boats from turn 3 on, and is judged by the first question."""
    return [
        recorded(
            said(
                number,
                role=Role.USER if number >= 3 else Role.ASSISTANT,
                content=f"Is boat {number} fast?",
                at=START + timedelta(minutes=number),
            )
        )
        for number in range(first, first + count)
    ]


async def later_changes(settings: Settings) -> list[AlertChanged]:
    """Every change of an alert but the first."""
    return (await events(settings, ALERTS))[1:]


async def answers(settings: Settings) -> list[dict[str, Any]]:
    """What the judge sent back, as it stands in the log."""
    found = [msgspec.json.decode(record.value or b"") for record in await records_on(settings, TURNS)]
    return [event for event in found if event["type"] == "turns_judged"]


@pytest.mark.parametrize(
    ("probability", "expected"),
    [(0.02, ("judged", Severity.WARNING, Mode.ELEVATED)), (0.98, ("worsened", Severity.CRITICAL, Mode.CRITICAL))],
)
async def test_an_alert_is_out_before_the_judge_answers(
    asking: Callable[..., Settings], topic_prefix: str, probability: float, expected: tuple[str, Severity, Mode]
) -> None:
    """The judge holds its answer until the alert was read; then the same alert changes by it (the mode falls late).

    All of it is of the trace that the turn's producer began.
    """
    released, harmful = threading.Event(), probability > 0.5
    spans = InMemorySpanExporter()
    tracing.start(TelemetrySettings(sample_ratio=0), "test", exporter=spans, counted=lambda *_: None)

    def say(_system: str, _user: str) -> str:
        released.wait(WITHIN_S)
        return json.dumps({"harmful": harmful, "probability": probability})

    with standing_in() as model:
        model.say = say
        settings = asking(model)
        async with running(settings, "sessions", "judge"):
            try:
                await send_to_turns(settings, [*turns(1, 2), *traced(turns(3, 1))])

                async def raised_and_asked() -> list[AlertChanged]:
                    return await events(settings, ALERTS) if model.asked else []

                before = await until(raised_and_asked, "an alert, and a question to the judge")
            finally:
                released.set()

            (after,) = await until(partial(later_changes, settings), "another change of the alert")
    tracing.stop()
    carried = {
        kind: (await headers_on(settings, topic, kind))[HEADER]
        for kind, topic in {
            "alert_changed": ALERTS,
            "judgement_requested": JUDGEMENTS,
            "turns_judged": TURNS,
            "user_turn_added": COMMANDS,
        }.items()
    }
    (raised,) = before
    (asked,) = model.asked
    said = {part.signal: part.value for part in after.escalation.contributions}

    assert (raised.cause, raised.severity, round(raised.score, 2)) == ("raised", Severity.WARNING, 0.6)
    assert (after.cause, after.severity, after.mode) == expected
    assert (after.alert_id, after.status) == (raised.alert_id, AlertStatus.FIRING)
    assert (said["judge"], after.score > raised.score) == (probability, harmful)
    assert [turn["content"] for turn in json.loads(asked.body["messages"][1]["content"])["turns"]] == [
        f"Is boat {number} fast?" for number in (1, 2, 3)
    ]
    # The turn's trace goes along to the judge and back, with both changes of the alert; other turns have none.
    assert carried == {"alert_changed": 2, "judgement_requested": 1, "turns_judged": 1, "user_turn_added": 1}
    assert [span.name for span in spans.get_finished_spans() if span.parent and span.parent.is_remote] == [
        f"{topic_prefix}.turns.v1 test",
        f"{topic_prefix}.judgement-requests.v1 test",
        f"{topic_prefix}.turns.v1 test",
    ]


async def test_a_judge_that_is_away_changes_nothing(asking: Callable[..., Settings]) -> None:
    """Its failure stands in the log; the alert stays as it was, and further turns are folded meanwhile."""
    with standing_in() as model:
        model.say = lambda _system, _user: "I would rather not say."
        settings = asking(model, timeout_s=5)
        async with running(settings, "sessions", "judge"):
            await send_to_turns(settings, turns(1, 3))
            (answered,) = await until(lambda: answers(settings), "the judge's answer")
            # With this turn the alert is repeated: the sessions role has read the answer before.
            await send_to_turns(settings, turns(4, 1))
            (repeated,) = await until(partial(later_changes, settings), "another change of the alert")
    asked = await records_on(settings, JUDGEMENTS)

    assert (answered["alert_id"], answered["failure"]) == (repeated.alert_id, "rubbish")
    assert (answered.get("probability"), answered["judge"]) == (None, "openai:guard")
    assert (repeated.cause, round(repeated.score, 2)) == ("renotified", 0.6)
    assert [part.signal for part in repeated.escalation.contributions if part.signal == "judge"] == []
    assert len(asked) == 1
