"""Drives one session through the fold, with offsets and a clock that follow the events."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np

from models import events
from models.policy import Policy
from models.session.fold import SessionState, fold
from models.session.topics.conversation_topics import ConversationTopics
from models.wire.arrival import SessionEvent, SessionInput, SessionTimedOut
from tests.support.entity_driver import EntityDriver

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
POLICY = Policy()


class Session(EntityDriver):
    """One session on one partition: inputs get the next offset and a clock that follows them."""

    def __init__(self, policy: Policy = POLICY) -> None:
        super().__init__(policy)
        self.state: SessionState | None = None
        self.watermark = NOON

    def put(
        self,
        event: SessionEvent,
        *,
        risk: float | None = None,
        vector: Sequence[float] | None = None,
        reading: float | None = None,
    ) -> None:
        """Fold one event and collect its outputs."""
        time = event.deadline if isinstance(event, SessionTimedOut) else event.timestamp
        self.watermark = max(self.watermark, time)
        array = None if vector is None else np.array(vector, dtype=np.float32)
        position = events.Position("turns", 3, self.offset)
        item = SessionInput(event, position, self.watermark, risk, array, reading=reading)
        self.offset += 1
        self.state, outputs = fold(self.state, item, self.policy)
        self.outputs += outputs

    def say(self, turn: int, content: str = "The boat needs sails.", **more: object) -> list[events.OutputEvent]:
        """One user turn, by default at one minute per turn number; gives its outputs."""
        already = len(self.outputs)
        vector = more.pop("vector", None)
        self.put(said(turn, content, **more), vector=vector)  # type: ignore[arg-type]
        return self.outputs[already:]

    def end(self, minute: float = 60) -> None:
        """End the session."""
        self.put(events.SessionEnded(session_id="s", timestamp=NOON + timedelta(minutes=minute), reason="bye"))

    def load(self) -> SessionState | None:
        """The state as it is stored."""
        return SessionState.load(self.stored) if self.stored else None

    @property
    def deadline(self) -> datetime:
        """The state's deadline, which must be set."""
        assert self.state is not None
        assert self.state.deadline is not None
        return self.state.deadline

    @property
    def topics(self) -> ConversationTopics:
        """The topic memory as it is."""
        assert self.state is not None
        return self.state.topics(self.policy)

    @property
    def profile(self) -> events.ProfileUpdated:
        """The last profile."""
        profile: events.ProfileUpdated = self.of(events.ProfileUpdated)[-1]
        return profile

    @property
    def alerts(self) -> list[events.AlertChanged]:
        """Every change of an alert."""
        return self.of(events.AlertChanged)

    @property
    def segments(self) -> list[events.SegmentCompacted]:
        """Every compaction."""
        return self.of(events.SegmentCompacted)


def said(turn: int, content: str = "The boat needs sails.", **more: object) -> events.Turn:
    """A user turn, one minute per number."""
    fields: dict[str, object] = {
        "session_id": "s",
        "user_id": "u",
        "app_id": "a",
        "turn": turn,
        "role": events.Role.USER,
        "content": content,
        "timestamp": NOON + timedelta(minutes=turn),
    }
    return msgspec.convert(fields | more, events.Turn)


def unnumbered(turn: events.Turn) -> events.UnnumberedTurn:
    """The turn, as somebody sends it who does not count."""
    return events.UnnumberedTurn(**{name: getattr(turn, name) for name in events.UnnumberedTurn.__struct_fields__})
