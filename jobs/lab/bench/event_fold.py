"""The sessions' own fold, keyed: one turn into one session, for contenders that keep a state per key.

`models.session.fold.fold` with the role's own decoding, scoring and embedding. What needs more than one key is left
out, in the contenders' favour: time-outs and the windows of apps. The watermark is the highest event time that the
process saw on the partition, less the policy's lateness.

The fold skips what it folded before by the offset in its state (design §5.1). That guard is Turntide's, not the
contender's: it is off unless a contender is named `…_guarded`, so that what is lost or doubled is what the framework
itself leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from aiokafka.structs import ConsumerRecord

from models.events import ClockTicked, OutputEvent
from models.partition.sessions import Arrival
from models.session.fold import SessionState, fold
from models.wire.arrival import SessionInput
from streams.inference.intake import Intake
from streams.settings import Settings
from streams.wiring import policy_of, scorer_of, stream_embedder_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EventFolded(NamedTuple):
    """What one turn amounts to.

    Attributes:
        outputs: In order.
        changed: Part → bytes, None to delete: for a store with several values per key.
        parts: All parts of the session after it: for a store with one value per key.
    """

    outputs: list[OutputEvent]
    changed: dict[str, bytes | None]
    parts: dict[str, bytes]


class EventFold:
    """Folds single turns into the parts of their session.

    Args:
        settings: Whose policy and embedder.
        guarded: Keep the fold's own guard against what comes again.
    """

    def __init__(self, settings: Settings, *, guarded: bool = False) -> None:
        self._policy = policy_of(settings)
        embedder = stream_embedder_of(settings)
        self._intake = Intake(self._policy, embedder, scorer_of(settings, embedder))
        self._watermarks: dict[int, datetime] = {}
        self._guarded = guarded

    def arrivals(self, records: Iterable[ConsumerRecord]) -> list[Arrival]:
        """Decode, score and embed; what cannot be used and ticks of a clock are left out."""
        arrivals = self._intake.take(records).arrivals
        return [arrival for arrival in arrivals if not isinstance(arrival.event, ClockTicked)]

    def fold(self, arrival: Arrival, parts: Mapping[str, bytes]) -> EventFolded:
        """Fold one event into its session, whose stored parts are given; they are not changed."""
        event, position = arrival.event, arrival.position
        if isinstance(event, ClockTicked):
            return EventFolded([], {}, dict(parts))
        time = event.timestamp - self._policy.partition.watermark_lateness
        watermark = max(self._watermarks.get(position.partition, _EPOCH), time)
        self._watermarks[position.partition] = watermark
        state = SessionState.load(parts) if parts else None
        if state is not None and not self._guarded:
            state.head.offset = -1
        item = SessionInput(event, position, watermark, arrival.risk, arrival.vector)
        state, outputs = fold(state, item, self._policy)
        changed = state.changed_parts()
        after = {name: value for name, value in {**parts, **changed}.items() if value is not None}
        return EventFolded(outputs, changed, after)


def record_of(
    *, topic: str, partition: int, offset: int, timestamp_ms: int, key: bytes, value: bytes
) -> ConsumerRecord:
    """A record as aiokafka has it, from what another client hands over."""
    return ConsumerRecord(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp=timestamp_ms,
        timestamp_type=1,
        key=key,
        value=value,
        checksum=None,
        serialized_key_size=len(key),
        serialized_value_size=len(value),
        headers=(),
    )
