"""The same fold in Quix Streams: one event at a time, its durable state, outputs through its own producer.

Set up as its documentation has it: a stateful `apply` over a dataframe, state in RocksDB with a changelog, written at
each checkpoint together with the offsets. Checkpoints come every half second, as the sessions role commits, not every
five as by default. `processing_guarantee` is its default, at-least-once; `bench kills` also runs it exactly-once. Its
state has any number of entries per message key, so a turn writes only the parts that changed; what was read once is
kept at hand.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from jobs.lab.bench.event_fold import EventFold, record_of
from jobs.lab.bench.figures import Timing
from jobs.lab.bench.stopwatch import Stopwatch
from models.entities import TOPIC_OF
from models.events import DeadLetter, OutputEvent
from models.events.topics import TURNS
from models.wire.codec import encode
from streams.settings import Settings

_COMMIT_INTERVAL_S = 0.5
_NAMES = "parts"
"""State entry with the names of the others, as it cannot list them."""
_SEPARATOR = b"\x1f"


def fold(settings: Settings, turns: int | None, *, guarantee: str = "at-least-once") -> Timing:
    """Fold the first `turns` turns that it polls, up to the last; none: without end."""
    # By name: the package is in the dependency group `bench` and has bounds of its own.
    quixstreams: Any = import_module("quixstreams")
    stopwatch = Stopwatch(turns)
    _Contender(quixstreams, settings, stopwatch, guarantee).app.run()
    return stopwatch.timing()


class _Contender:
    """The application and its state; what it has read from that once it keeps at hand."""

    def __init__(self, quixstreams: Any, settings: Settings, stopwatch: Stopwatch, guarantee: str) -> None:
        self._stopwatch = stopwatch
        self._fold = EventFold(settings)
        self._sessions: dict[bytes, dict[str, bytes]] = {}
        self._context = quixstreams.message_context
        self.app = quixstreams.Application(
            broker_address=settings.kafka.bootstrap,
            consumer_group=f"{settings.topic_prefix}.quix",
            consumer_extra_config={"session.timeout.ms": int(settings.kafka.session_timeout.total_seconds() * 1000)},
            auto_offset_reset="earliest",
            commit_interval=_COMMIT_INTERVAL_S,
            processing_guarantee=guarantee,
            state_dir=settings.data_dir / "quix" / settings.topic_prefix,
            on_message_processed=self._processed,
            loglevel="ERROR",
        )
        frame = self.app.dataframe(self._topic(TURNS.full_name(settings.topic_prefix)))
        outputs = frame.apply(self._take, stateful=True, metadata=True, expand=True)
        for kind, topic in TOPIC_OF.items():
            if kind is DeadLetter:
                continue
            chosen = outputs.filter(lambda output, kind=kind: isinstance(output, kind))
            chosen.apply(encode).to_topic(self._topic(topic.full_name(settings.topic_prefix)))

    def _topic(self, name: str) -> Any:
        return self.app.topic(name, key_deserializer="bytes", value_deserializer="bytes", value_serializer="bytes")

    def _take(self, value: bytes, key: bytes, timestamp_ms: int, _: Any, state: Any) -> list[OutputEvent]:
        place = self._context()
        record = record_of(
            topic=place.topic,
            partition=place.partition,
            offset=place.offset,
            timestamp_ms=timestamp_ms,
            key=key,
            value=value,
        )
        outputs: list[OutputEvent] = []
        for arrival in self._fold.arrivals([record]):
            before = self._stored(key, state)
            folded = self._fold.fold(arrival, before)
            for part, written in folded.changed.items():
                if written is None:
                    state.delete(part)
                else:
                    state.set_bytes(part, written)
            if folded.parts.keys() != before.keys():
                state.set_bytes(_NAMES, _SEPARATOR.join(name.encode() for name in folded.parts))
            self._sessions[key] = folded.parts
            outputs += folded.outputs
        return outputs

    def _stored(self, key: bytes, state: Any) -> dict[str, bytes]:
        if key not in self._sessions:
            names = (state.get_bytes(_NAMES) or b"").split(_SEPARATOR)
            self._sessions[key] = {name.decode(): state.get_bytes(name.decode()) for name in names if name}
        return self._sessions[key]

    def _processed(self, *_: Any) -> None:
        if self._stopwatch.took_one():
            self.app.stop()
