"""Dead letters, alerts and their relay on a real broker."""

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec
import pytest

from jobs.alerts.command import harmless_alert, latest_alerts, say
from jobs.operate.dlq import letters, replay_letters
from models.errors import ConfigurationError
from models.events import AlertAcknowledged, AlertChanged, AlertStatus, DeadLetter
from models.events.topics import ALERTS, DEAD_LETTERS, TURNS, Topic
from models.session.outputs import TOPICS_STAGE
from models.wire.codec import encode
from models.wire.envelope import headers_for
from streams.kafka.producer import Record
from streams.notify import relay
from streams.observe.telemetry import metrics
from streams.ports import NO_TRACE_IDS
from streams.settings import Settings
from tests.support.command_line import refused, turntide
from tests.support.fault_driver import records_on, write
from tests.support.lake_records import example
from tests.support.traced import HEADER, TRACE_ID, traced

pytestmark = pytest.mark.usefixtures("environment")

NOW = datetime(2026, 1, 5, tzinfo=UTC)
CONTENT = b"\x00secret words\xff"


async def put(
    settings: Settings, topic: Topic, events: Sequence[DeadLetter | AlertChanged], *, trace: bytes | None = None
) -> None:
    """Put events on a topic, all in one partition and, if so wanted, of one trace."""
    records = [Record(b"k", encode(event), headers_for(event)) for event in events]
    await write(settings, topic, records if trace is None else traced(records, trace))


def letter(number: int, reason: str = "not_json") -> DeadLetter:
    """A dead letter from the given offset."""
    place = {"topic": "turntide.turns.v1", "partition": 1, "offset": number, "reason": reason}
    headers = [("traceparent", b"00-1"), ("empty", None)]
    kept = {"key": b"session", "value": CONTENT, "headers": headers, "stage": "decode"}
    return msgspec.structs.replace(example(DeadLetter), id=f"letter-{number}", **place, **kept)


async def test_content_is_shown_on_demand_only(settings: Settings) -> None:
    """Sizes, reason and place, once for a letter that a crash wrote twice; the bytes come out whole with --reveal."""
    await put(settings, DEAD_LETTERS, [letter(1), letter(2, "invalid_field"), letter(1)])
    done = await asyncio.to_thread(turntide, "dlq", "list", "--output", "json")
    shown = await asyncio.to_thread(turntide, "dlq", "show", "letter-1")
    revealed = await asyncio.to_thread(turntide, "dlq", "show", "letter-1", "--reveal")
    rows = json.loads(done.stdout)

    assert [(row["id"], row["reason"], row["offset"]) for row in rows] == [
        ("letter-1", "not_json", 1),
        ("letter-2", "invalid_field", 2),
    ]
    assert {(row["key_bytes"], row["value_bytes"]) for row in rows} == {(7, len(CONTENT))}
    assert "secret" not in done.stdout + shown.stdout
    assert revealed.stdout_bytes == CONTENT
    assert base64.b64encode(CONTENT).decode() not in done.stdout


async def test_replay_sends_the_original_record(settings: Settings) -> None:
    """Key, value and headers as they were, and where they came from; nothing by accident.

    A letter too large to keep its value would come back as a null value; a topic's history is no input at all.
    """
    await put(settings, DEAD_LETTERS, [letter(1), letter(2, "invalid_field")])
    for unclear in ([], ["--all", "--reason", "not_json"], ["--id", "nobody"]):
        await asyncio.to_thread(refused, "dlq", "replay", *unclear)
    assert await records_on(settings, TURNS) == []
    await replay_letters(settings, await letters(settings, lambda found: found.reason == "invalid_field"))
    (record,) = await records_on(settings, TURNS)

    assert (record.key, record.value) == (b"session", CONTENT)
    assert list(record.headers) == [
        ("traceparent", b"00-1"),
        ("empty", b""),
        ("replayed_from", b"turntide.turns.v1-1-2"),
    ]

    too_large = msgspec.structs.replace(letter(3), value=None)
    history = msgspec.structs.replace(letter(4, "damaged_history"), stage=TOPICS_STAGE)
    await put(settings, DEAD_LETTERS, [too_large, history])
    done = await asyncio.to_thread(turntide, "dlq", "replay", "--all", "--output", "json")

    counts = {"replayed": 2, "without_value": 1, "no_input": 1}
    assert json.loads(done.stdout) == {**counts, "topic": TURNS.full_name(settings.topic_prefix)}
    assert [record.value for record in await records_on(settings, TURNS)] == [CONTENT] * 3


def alert(number: int, *, name: str = "a", status: AlertStatus = AlertStatus.FIRING) -> AlertChanged:
    """A change of an alert."""
    return msgspec.structs.replace(
        harmless_alert(NOW), id=f"change-{number}", alert_id=name, session_id="session-1", status=status
    )


async def test_alerts_by_their_latest_change(settings: Settings) -> None:
    """One that fires is listed, and acknowledged under its session's key; of others that is told, and nothing written.

    Under that key it has its place among the turns.
    """
    changes = [alert(1), alert(2, name="b"), alert(3, status=AlertStatus.RESOLVED)]
    await put(settings, ALERTS, changes)
    done = await asyncio.to_thread(turntide, "alerts", "list", "--status", "firing", "--output", "json")
    latest = {name: change.id for name, change in (await latest_alerts(settings)).items()}
    for name in ("a", "unknown"):
        with pytest.raises(ConfigurationError, match=name):
            await say(settings, [name], AlertAcknowledged)
    await say(settings, ["b"], AlertAcknowledged, by="anna", note="on it")
    (record,) = await records_on(settings, TURNS)
    event = msgspec.json.decode(record.value, type=AlertAcknowledged)

    assert ([row["alert_id"] for row in json.loads(done.stdout)], latest) == (["b"], {"a": "change-3", "b": "change-2"})
    assert (record.key, event.app_id) == (b"session-1", changes[1].app_id)
    assert (event.alert_id, event.by, event.note) == ("b", "anna", "on it")


class Recorder:
    """A sink that keeps what it is given, and stops the relay after `until` changes."""

    name = "first"

    def __init__(self, *, stop: asyncio.Event, until: int) -> None:
        self.delivered: list[str] = []
        self.traced: dict[str, str] = {}
        self._stop = stop
        self._until = until

    async def deliver(self, alerts: Sequence[AlertChanged], trace_ids: Mapping[str, str] = NO_TRACE_IDS) -> None:
        """Keep the ids."""
        self.traced |= trace_ids
        self.delivered += [change.id for change in alerts]
        if len(self.delivered) >= self._until:
            self._stop.set()

    async def close(self) -> None:
        """Nothing to release."""


async def test_relay_delivers_and_commits(settings: Settings) -> None:
    """Each change once and in order, with the trace it is of; a second start goes on behind it.

    What is no alert can never be delivered: it holds up nobody.
    """
    await write(settings, ALERTS, [Record(b"k", b"not json"), Record(b"k", encode(alert(1)))])
    await put(settings, ALERTS, [alert(2)], trace=HEADER)
    stop = asyncio.Event()
    sink = Recorder(stop=stop, until=2)
    await relay.run(settings, [sink], stop=stop)
    await put(settings, ALERTS, [alert(3)], trace=b"rubbish")
    stop = asyncio.Event()
    later = Recorder(stop=stop, until=1)
    await relay.run(settings, [later], stop=stop)

    assert (sink.delivered, later.delivered) == (["change-1", "change-2"], ["change-3"])
    assert (sink.traced, later.traced) == ({"change-2": TRACE_ID}, {})
    assert metrics.registry.get_sample_value("turntide_sink_lag_records", {"sink": "first", "partition": "0"}) == 0


async def test_relay_without_sinks(settings: Settings) -> None:
    """A notify role that would deliver nowhere says so instead of running."""
    with pytest.raises(ConfigurationError, match="TURNTIDE_NOTIFY__"):
        await relay.run(settings, [], stop=asyncio.Event())
