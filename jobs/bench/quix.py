"""The same fold in Quix Streams: one event at a time, its durable state, outputs through its own producer.

State goes to RocksDB and the changelog at each checkpoint, every half second as the sessions role commits. Its state
has any number of entries per message key, so a turn writes only the parts that changed. What a turn changes in another
session (a time-out) is left out, in its favour: there is no writing under another key.
"""

from __future__ import annotations

from importlib import import_module
from time import perf_counter
from typing import Any

from jobs.bench.event_fold import EventFold, record_of
from jobs.bench.figures import Timing
from models.codec import encode
from models.events import SessionOutput
from models.topics import TOPIC_OF, TURNS
from streams.settings import Settings

_COMMIT_INTERVAL_S = 0.5


def fold(settings: Settings, turns: int) -> Timing:
    """Fold the first `turns` turns that it polls, from the first to the last."""
    # By name: the package is in the dependency group `bench` and has bounds of its own.
    quixstreams: Any = import_module("quixstreams")
    contender = _Contender(quixstreams, settings, turns)
    contender.app.run()
    return Timing(turns, contender.ended_s - contender.began_s)


class _Contender:
    """The application and its clock."""

    def __init__(self, quixstreams: Any, settings: Settings, turns: int) -> None:
        self.began_s = self.ended_s = 0.0
        self._left = turns
        self._fold = EventFold(settings)
        self._context = quixstreams.message_context
        self.app = quixstreams.Application(
            broker_address=settings.kafka.bootstrap,
            consumer_group=f"{settings.topic_prefix}.quix",
            auto_offset_reset="earliest",
            commit_interval=_COMMIT_INTERVAL_S,
            state_dir=settings.data_dir / "quix" / settings.topic_prefix,
            on_message_processed=self._processed,
            loglevel="ERROR",
        )
        self._topics = {kind: self._topic(topic.full_name(settings.topic_prefix)) for kind, topic in TOPIC_OF.items()}
        frame = self.app.dataframe(self._topic(TURNS.full_name(settings.topic_prefix)))
        outputs = frame.apply(self._take, stateful=True, metadata=True, expand=True)
        for kind, topic in self._topics.items():
            chosen = outputs.filter(lambda output, kind=kind: isinstance(output, kind))
            chosen.apply(encode).to_topic(topic)

    def _topic(self, name: str) -> Any:
        return self.app.topic(name, key_deserializer="bytes", value_deserializer="bytes", value_serializer="bytes")

    def _take(self, value: bytes, key: bytes, timestamp_ms: int, _: Any, state: Any) -> list[SessionOutput]:
        if not self.began_s:
            self.began_s = perf_counter()
        place = self._context()
        folded = self._fold.fold(
            record_of(
                topic=place.topic,
                partition=place.partition,
                offset=place.offset,
                timestamp_ms=timestamp_ms,
                key=key,
                value=value,
            )
        )
        for part, written in folded.changed.get(key.decode(), {}).items():
            if written is None:
                state.delete(part)
            else:
                state.set_bytes(part, written)
        return folded.outputs

    def _processed(self, *_: Any) -> None:
        self._left -= 1
        if not self._left:
            self.ended_s = perf_counter()
            self.app.stop()
