"""State of the demo while it plays: what was sent, how far the roles are, and the alerts."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from jobs.demo.conversations import DemoConversation
from models.events import AlertChanged, OutputEvent, ProfileUpdated


class DemoState(Struct):
    """What the view shows while conversations are played.

    Attributes:
        conversations: Of the play, by session.
        seen: Ids of events; the log may hold one twice.
        alerts: Alert id → its changes, in their order.
        turns: Session → turns that its latest profile accounts for.
        sent_at_s: (session, turn) → when it was handed to the producer, monotonic seconds.
        latency_s: Alert id → from the sending of its turn to its arrival here.
        lag: Records of `turns.v1` that the sessions role has not committed; None: not known yet.
        archived: Records of all topics that the archive has landed; None: not known yet.
        elapsed_s: Since the play began.
    """

    conversations: dict[str, DemoConversation]
    seen: set[str] = set()
    alerts: dict[str, list[AlertChanged]] = {}
    turns: dict[str, int] = {}
    sent_at_s: dict[tuple[str, int], float] = {}
    latency_s: dict[str, float] = {}
    lag: int | None = None
    archived: int | None = None
    elapsed_s: float = 0.0

    @classmethod
    def of(cls, conversations: Iterable[DemoConversation]) -> DemoState:
        """Before the first turn."""
        return cls({each.session_id: each for each in conversations})

    @property
    def planned_turns(self) -> int:
        """Turns of the whole play."""
        return sum(len(each.turns) for each in self.conversations.values())

    @property
    def folded_turns(self) -> int:
        """Turns that the profiles account for."""
        return sum(self.turns.values())

    def alert_of(self, session_id: str) -> AlertChanged | None:
        """Latest change of the session's latest alert."""
        changes = (changes[-1] for changes in reversed(self.alerts.values()))
        return next((change for change in changes if change.session_id == session_id), None)

    def take(self, event: OutputEvent, at_s: float) -> bool:
        """Note one event that arrived at `at_s`, monotonic seconds; returns whether it was new."""
        if event.id in self.seen:
            return False
        self.seen.add(event.id)
        if isinstance(event, ProfileUpdated):
            self.turns[event.session_id] = event.turn_count
        elif isinstance(event, AlertChanged):
            sent_s = self.sent_at_s.get((event.session_id, event.turn))
            if event.alert_id not in self.alerts and sent_s is not None:
                self.latency_s[event.alert_id] = max(0.0, at_s - sent_s)
            self.alerts.setdefault(event.alert_id, []).append(event)
        return True
