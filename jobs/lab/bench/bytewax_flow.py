"""The same fold in Bytewax, with recovery on: a dataflow from Kafka to Kafka through its own connectors.

Set up as its documentation has it: `KafkaSource` → `flat_map_batch` for what is cheaper in batches (decode, score,
embed) → `stateful_flat_map` by session → `KafkaSink`, which flushes each batch. Recovery partitions (SQLite) are made
once, as many as workers it could ever be scaled to: one for each partition of the topic. The snapshot interval has no
default with recovery; it is half a second, as the sessions role commits. The backup interval is zero: nothing is backed
up off the machine. One worker, as one sessions role.
"""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from typing import Any

from jobs.lab.bench.event_fold import EventFold, record_of
from jobs.lab.bench.figures import Timing
from jobs.lab.bench.stopwatch import Stopwatch
from models.entities import TOPIC_OF
from models.events.topics import TURNS
from models.partition.sessions import Arrival
from models.wire.codec import encode
from streams.settings import Settings

SNAPSHOT_INTERVAL = timedelta(seconds=0.5)
RECOVERY_PARTITIONS = 4

_Parts = dict[str, bytes]


def fold(settings: Settings, turns: int | None) -> Timing:
    """Fold the log, which has `turns` turns, to its end; none: without end."""
    # By name: the package is in the dependency group `bench` and has no wheels for each Python.
    recovery: Any = import_module("bytewax.recovery")
    run: Any = import_module("bytewax.run")
    stopwatch = Stopwatch(turns)
    folder = settings.data_dir / "bytewax" / settings.topic_prefix
    if not folder.exists():
        # Made under another name first: a kill in between must not leave half of them.
        fresh = folder.with_name(f"{folder.name}.new")
        fresh.mkdir(parents=True)
        recovery.init_db_dir(fresh, RECOVERY_PARTITIONS)
        fresh.rename(folder)
    run.cli_main(
        _flow(settings, stopwatch, tail=turns is None),
        epoch_interval=SNAPSHOT_INTERVAL,
        recovery_config=recovery.RecoveryConfig(folder, timedelta(0)),
    )
    return stopwatch.timing()


def _flow(settings: Settings, stopwatch: Stopwatch, *, tail: bool) -> Any:
    dataflow: Any = import_module("bytewax.dataflow")
    operators: Any = import_module("bytewax.operators")
    kafka: Any = import_module("bytewax.connectors.kafka")
    steps = _Steps(settings, stopwatch, kafka.KafkaSinkMessage)
    brokers = settings.kafka.bootstrap.split(",")
    flow = dataflow.Dataflow("bench")
    turns = operators.input(
        "turns", flow, kafka.KafkaSource(brokers, [TURNS.full_name(settings.topic_prefix)], tail=tail)
    )
    arrivals = operators.flat_map_batch("intake", turns, steps.arrivals)
    outputs = operators.stateful_flat_map("fold", arrivals, steps.fold)
    messages = operators.map("message", outputs, steps.message)
    sink = kafka.KafkaSink(brokers, topic=None, add_config={"partitioner": "murmur2_random"})
    operators.output("outputs", messages, sink)
    return flow


class _Steps:
    """What the dataflow's operators call."""

    def __init__(self, settings: Settings, stopwatch: Stopwatch, sink_message: Any) -> None:
        self._fold = EventFold(settings)
        self._stopwatch = stopwatch
        self._sink_message = sink_message
        self._topics = {kind: topic.full_name(settings.topic_prefix) for kind, topic in TOPIC_OF.items()}

    def arrivals(self, messages: list[Any]) -> list[tuple[str, Arrival]]:
        """Decode, score and embed what the source read at once."""
        records = [
            record_of(
                topic=message.topic,
                partition=message.partition,
                offset=message.offset,
                timestamp_ms=message.timestamp[1],
                key=message.key,
                value=message.value,
            )
            for message in messages
        ]
        return [(arrival.event.session_id, arrival) for arrival in self._fold.arrivals(records)]

    def fold(self, parts: _Parts | None, arrival: Arrival) -> tuple[_Parts | None, list[Any]]:
        """Fold one event into the session's state; an empty one is forgotten."""
        folded = self._fold.fold(arrival, parts or {})
        messages = [
            self._sink_message(
                key=arrival.event.session_id.encode(), value=encode(each), topic=self._topics[type(each)]
            )
            for each in folded.outputs
        ]
        self._stopwatch.took_one()
        return folded.parts or None, messages

    @staticmethod
    def message(keyed: tuple[str, Any]) -> Any:
        """What is sent, without the session's id beside it."""
        return keyed[1]
