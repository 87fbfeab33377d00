"""The same fold as each contender runs it, and the floor: the fold without Kafka, and Kafka without a fold.

`python -m jobs.lab.bench.contender NAME` works until it is killed or its standard input closes, with settings from the
environment, as a role's. Each contender reads `turns.v1` from its start, alone on the topic's partitions.

Frameworks that keep a state per key fold one turn into one session, with the role's own decoding, scoring and
embedding; what needs more than one key (time-outs, windows of apps) is left out in their favour. The watermark is the
highest event time that the process saw on the partition, less the policy's lateness. The fold skips what it folded
before by the offset in its state (design §5.1): Turntide's guard, which is off unless a contender is named `…_guarded`,
so that what is lost or doubled is what the framework itself leaves.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import faust
import msgspec
from aiokafka.structs import ConsumerRecord

from jobs.lab.bench.folds import plain_fold, raw_read, record_of
from jobs.lab.bench.measuring import Stopwatch, Timing, apart
from jobs.lab.bench.recovery import faust_app
from jobs.shared.role_process import RoleProcess, environment_of, own_command
from models.entities import TOPIC_OF
from models.events import ClockTicked, DeadLetter, OutputEvent
from models.events.topics import TURNS
from models.partition.sessions import DecodedArrival
from models.session.fold import SessionState, fold
from models.wire.arrival import SessionInput
from models.wire.codec import encode
from streams.inference.intake import Intake
from streams.kafka.client import require_topic
from streams.settings import Settings, load_settings
from streams.wiring import policy_of, scorer_of, stream_embedder_of

CONTENDERS = ("raw_read", "plain_fold", "per_event_faust", "quix", "bytewax")
"""Compared with the sessions role in speed."""
DURABLE = ("per_event_faust", "per_event_faust_guarded", "quix_at_least_once", "quix_exactly_once", "bytewax")
"""Compared with it under kills."""
_PACKAGES = {"quix": "quixstreams", "bytewax": "bytewax"}
_WITHIN_S = 600.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INTERVAL = timedelta(seconds=0.5)
"""Between checkpoints and snapshots, as the sessions role commits."""
_RECOVERY_PARTITIONS = 4
_NAMES = "parts"
"""State entry of Quix Streams with the names of the others, as it cannot list them."""
_SEPARATOR = b"\x1f"
_RAW: Mapping[str, Any] = {"key_serializer": "raw", "value_serializer": "raw"}
Parts = dict[str, bytes]


def missing_package(contender: str) -> str | None:
    """The package that this contender needs and that is not installed, if any."""
    package = _PACKAGES.get(contender.partition("_")[0])
    return package if package is not None and find_spec(package) is None else None


class ContenderProcess(RoleProcess):
    """A contender that works without end; it ends with the process that started it, whatever happens to that."""

    def _command(self) -> list[str]:
        return [*own_command("jobs.lab.bench.contender"), self.role]


def run_contender(name: str, settings: Settings, turns: int) -> Timing:
    """Run one of `CONTENDERS` on the first `turns` turns of the log, in a process of its own (`apart`)."""
    too_slow, environment = f"take {turns} turns in {_WITHIN_S:g} s: run with fewer turns", environment_of(settings)
    return apart(name, work, name, turns, within_s=_WITHIN_S, too_slow=too_slow, environment=environment)


def work(name: str, turns: int | None) -> Timing:
    """Take the first turns of the log as a contender does, or work without end."""
    settings, kind = load_settings(), name.partition("_")[0]
    if name == "raw_read":
        return asyncio.run(raw_read(settings, turns or 0))
    if name == "plain_fold":
        return asyncio.run(plain_fold(settings, turns or 0))
    adapter: type[EventFold] = {"per": _Faust, "quix": _Quix, "bytewax": _Bytewax}[kind]
    return adapter(settings, turns, name=name).run()


class EventFolded(NamedTuple):
    """Result of a folded turn: outputs in order, changed parts (None: deleted), all parts of the session after it."""

    outputs: list[OutputEvent]
    changed: dict[str, bytes | None]
    parts: Parts


class EventFold:
    """Folds single turns into the parts of their session: the adapter that all frameworks share.

    The time ends after so many turns; with None never. A contender that is named `…_guarded` keeps the fold's own guard
    against what comes again.
    """

    def __init__(self, settings: Settings, turns: int | None = None, *, name: str = "") -> None:
        self.name = name
        self.settings = settings
        self.stopwatch = Stopwatch(turns)
        self.turns = TURNS.full_name(settings.topic_prefix)
        self.topics = {kind: topic.full_name(settings.topic_prefix) for kind, topic in TOPIC_OF.items()}
        self._policy = policy_of(settings)
        embedder = stream_embedder_of(settings)
        self._intake = Intake(self._policy, embedder, scorer_of(settings, embedder))
        self._watermarks: dict[int, datetime] = {}
        self._sessions: dict[bytes, Parts] = {}

    def run(self) -> Timing:
        """Fold the first turns of the log, or work without end, as the framework does it."""
        raise NotImplementedError

    def arrivals(self, records: Iterable[ConsumerRecord]) -> list[DecodedArrival]:
        """Decode, score and embed; what cannot be used and ticks of a clock are left out."""
        arrivals = self._intake.take(records).arrivals
        return [arrival for arrival in arrivals if not isinstance(arrival.event, ClockTicked)]

    def fold(self, arrival: DecodedArrival, parts: Mapping[str, bytes]) -> EventFolded:
        """Fold one event into its session, whose stored parts are given; they are not changed."""
        event, position = arrival.event, arrival.position
        if isinstance(event, ClockTicked):
            return EventFolded([], {}, dict(parts))
        time = event.timestamp - self._policy.partition.watermark_lateness
        watermark = max(self._watermarks.get(position.partition, _EPOCH), time)
        self._watermarks[position.partition] = watermark
        state = SessionState.load(parts) if parts else None
        if state is not None and not self.name.endswith("_guarded"):
            state.head.offset = -1
        added = (arrival.risk, arrival.vector, 0, arrival.language, arrival.harms, arrival.reading)
        item = SessionInput(event, position, watermark, *added)
        state, outputs = fold(state, item, self._policy)
        changed = state.changed_parts()
        after = {name: value for name, value in {**parts, **changed}.items() if value is not None}
        return EventFolded(outputs, changed, after)

    def take(self, record: ConsumerRecord, stored: Callable[[bytes], Parts]) -> Iterator[tuple[Parts, EventFolded]]:
        """Fold a record; gives the parts of its session before, which are read from the store once, and what came."""
        for arrival in self.arrivals([record]):
            if record.key not in self._sessions:
                self._sessions[record.key] = stored(record.key)
            before = self._sessions[record.key]
            folded = self.fold(arrival, before)
            self._sessions[record.key] = folded.parts
            yield before, folded


class _Faust(EventFold):
    """The same fold in stock Faust: one event at a time, outputs awaited, one table write per event.

    Set up as Faust's documentation has it: default transport, an agent over `stream.events()`, a table with a
    changelog, outputs acknowledged with `await (await topic.send(…))` before the table is written. Of one event all
    sends are awaited together. A table has one value per key, so a write holds all parts of the session: a recovery
    must find them. The table's store is in memory, which is faster than RocksDB and as durable: both are rebuilt from
    the changelog. Only the session time-out is not Faust's 60 s but ours, so that a killed worker's partitions are not
    waited for longer.
    """

    def run(self) -> Timing:
        """Fold the first turns that the agent gets, up to the last one's acknowledgement."""
        return asyncio.run(self._run())

    async def _run(self) -> Timing:
        kafka = self.settings.kafka
        app = faust_app(
            self.settings,
            "per-event-faust",
            broker_session_timeout=kafka.session_timeout.total_seconds(),
            broker_heartbeat_interval=kafka.heartbeat_interval.total_seconds(),
            consumer_auto_offset_reset="earliest",
        )
        partitions = len(await require_topic(kafka, self.turns))
        self._done = asyncio.Event()
        self._table = app.Table("sessions", partitions=partitions, key_type=bytes, value_type=bytes)
        self._outputs = {kind: app.topic(name, **_RAW) for kind, name in self.topics.items()}
        app.agent(app.topic(self.turns, **_RAW, value_type=bytes), name="per-event", concurrency=1)(self._agent)
        await app.start()
        try:
            await self._done.wait()
        finally:
            await app.stop()
        return self.stopwatch.timing()

    async def _agent(self, stream: faust.StreamT[bytes]) -> None:
        async for event in stream.events():
            if not self._done.is_set():
                await self._take(event.message)

    async def _take(self, message: Any) -> None:
        record = record_of(
            message.topic, message.offset, int(message.timestamp * 1000), message.key, message.value, message.partition
        )
        for _, folded in self.take(record, self._stored):
            pending = [
                await self._outputs[type(output)].send(
                    key=message.key, value=encode(output), partition=message.partition
                )
                for output in folded.outputs
            ]
            await asyncio.gather(*pending)
            self._table[message.key] = msgspec.msgpack.encode(folded.parts)
        if self.stopwatch.took_one():
            self._done.set()

    def _stored(self, key: bytes) -> Parts:
        value = self._table.get(key)
        return msgspec.msgpack.decode(value, type=Parts) if value else {}


class _Quix(EventFold):
    """The same fold in Quix Streams: one event at a time, its durable state, outputs through its own producer.

    Set up as its documentation has it: a stateful `apply` over a dataframe, state in RocksDB with a changelog, written
    at each checkpoint together with the offsets. Checkpoints come every half second, not every five as by default.
    `processing_guarantee` is its default, at-least-once; `bench kills` also runs it exactly-once. Its state has any
    number of entries per message key, so a turn writes only the parts that changed.
    """

    def run(self) -> Timing:
        """Fold the first turns that it polls, up to the last."""
        # By name: the package is in the dependency group `bench` and has bounds of its own.
        quixstreams: Any = import_module("quixstreams")
        settings = self.settings
        self._context = quixstreams.message_context
        self._app = quixstreams.Application(
            broker_address=settings.kafka.bootstrap,
            consumer_group=f"{settings.topic_prefix}.quix",
            consumer_extra_config={"session.timeout.ms": int(settings.kafka.session_timeout.total_seconds() * 1000)},
            auto_offset_reset="earliest",
            commit_interval=_INTERVAL.total_seconds(),
            processing_guarantee="exactly-once" if self.name == "quix_exactly_once" else "at-least-once",
            state_dir=settings.data_dir / "quix" / settings.topic_prefix,
            on_message_processed=self._processed,
            loglevel="ERROR",
        )
        frame = self._app.dataframe(self._topic(self.turns))
        outputs = frame.apply(self._take, stateful=True, metadata=True, expand=True)
        for kind, name in self.topics.items():
            if kind is DeadLetter:
                continue
            chosen = outputs.filter(lambda output, kind=kind: isinstance(output, kind))
            chosen.apply(encode).to_topic(self._topic(name))
        self._app.run()
        return self.stopwatch.timing()

    def _topic(self, name: str) -> Any:
        return self._app.topic(name, key_deserializer="bytes", value_deserializer="bytes", value_serializer="bytes")

    def _take(self, value: bytes, key: bytes, timestamp_ms: int, _: Any, state: Any) -> list[OutputEvent]:
        place = self._context()
        record = record_of(place.topic, place.offset, timestamp_ms, key, value, place.partition)
        outputs: list[OutputEvent] = []
        for before, folded in self.take(record, lambda _: _quix_parts(state)):
            for part, written in folded.changed.items():
                if written is None:
                    state.delete(part)
                else:
                    state.set_bytes(part, written)
            if folded.parts.keys() != before.keys():
                state.set_bytes(_NAMES, _SEPARATOR.join(name.encode() for name in folded.parts))
            outputs += folded.outputs
        return outputs

    def _processed(self, *_: Any) -> None:
        if self.stopwatch.took_one():
            self._app.stop()


def _quix_parts(state: Any) -> Parts:
    names = (state.get_bytes(_NAMES) or b"").split(_SEPARATOR)
    return {name.decode(): state.get_bytes(name.decode()) for name in names if name}


class _Bytewax(EventFold):
    """The same fold in Bytewax, with recovery on: a dataflow from Kafka to Kafka through its own connectors.

    Set up as its documentation has it: `KafkaSource` → `flat_map_batch` for what is cheaper in batches (decode, score,
    embed) → `stateful_flat_map` by session → `KafkaSink`, which flushes each batch. Recovery partitions (SQLite) are
    made once, as many as workers it could ever be scaled to: one for each partition of the topic. The snapshot interval
    has no default with recovery; it is half a second. The backup interval is zero: nothing is backed up off the
    machine. One worker, as one sessions role.
    """

    def run(self) -> Timing:
        """Fold the log to its end, or without end."""
        # By name: the package is in the dependency group `bench` and has no wheels for each Python.
        recovery: Any = import_module("bytewax.recovery")
        run: Any = import_module("bytewax.run")
        folder = self.settings.data_dir / "bytewax" / self.settings.topic_prefix
        if not folder.exists():
            # Made under another name first: a kill in between must not leave half of them.
            fresh = folder.with_name(f"{folder.name}.new")
            fresh.mkdir(parents=True)
            recovery.init_db_dir(fresh, _RECOVERY_PARTITIONS)
            fresh.rename(folder)
        config = recovery.RecoveryConfig(folder, timedelta(0))
        run.cli_main(self._flow(), epoch_interval=_INTERVAL, recovery_config=config)
        return self.stopwatch.timing()

    def _flow(self) -> Any:
        operators: Any = import_module("bytewax.operators")
        kafka: Any = import_module("bytewax.connectors.kafka")
        self._sink_message = kafka.KafkaSinkMessage
        brokers = self.settings.kafka.bootstrap.split(",")
        flow = import_module("bytewax.dataflow").Dataflow("bench")
        source = kafka.KafkaSource(brokers, [self.turns], tail=self.stopwatch.endless)
        turns = operators.input("turns", flow, source)
        arrivals = operators.flat_map_batch("intake", turns, self._arrivals)
        outputs = operators.stateful_flat_map("fold", arrivals, self._fold_one)
        messages = operators.map("message", outputs, lambda keyed: keyed[1])
        sink = kafka.KafkaSink(brokers, topic=None, add_config={"partitioner": "murmur2_random"})
        operators.output("outputs", messages, sink)
        return flow

    def _arrivals(self, messages: list[Any]) -> list[tuple[str, DecodedArrival]]:
        """Decode, score and embed what the source read at once."""
        records = [
            record_of(each.topic, each.offset, each.timestamp[1], each.key, each.value, each.partition)
            for each in messages
        ]
        return [(arrival.event.session_id, arrival) for arrival in self.arrivals(records)]

    def _fold_one(self, parts: Parts | None, arrival: DecodedArrival) -> tuple[Parts | None, list[Any]]:
        """Fold one event into the session's state, which the framework keeps; an empty one is forgotten."""
        folded = self.fold(arrival, parts or {})
        key = arrival.event.session_id.encode()
        messages = [
            self._sink_message(key=key, value=encode(each), topic=self.topics[type(each)]) for each in folded.outputs
        ]
        self.stopwatch.took_one()
        return folded.parts or None, messages


def _end_with_parent() -> None:
    """The parent holds the other end of standard input: its end means that the parent is gone."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work(sys.argv[1], None)
