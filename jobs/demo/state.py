"""State of the demo at a moment: a fold over Turntide's own output events, which the summary judges."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from msgspec import Struct, field

from jobs.demo.conversations import DemoConversation
from jobs.demo.spaces import SpacesSeen
from jobs.demo.users import UsersSeen
from models.events import (
    AlertChanged,
    AppMemoriesChanged,
    AppMemoriesCompacted,
    AppMemoryChanged,
    EpisodeClosed,
    EpisodeCompressed,
    FactChanged,
    OutputEvent,
    ProfileUpdated,
    TopicChanged,
    UserMemoryChanged,
)

_RATE_OVER_S = 5.0


class SessionSeen(Struct):
    """One session, as its profiles show it."""

    conversation: DemoConversation
    turns: int = 0
    topics: list[TopicChanged] = []
    """Every change of its topics, in their order."""
    ended: bool = False


class AlertSeen(Struct):
    """One alert through its life: the latest change, and how soon the first one came."""

    raised: AlertChanged
    latest: AlertChanged
    gravest: AlertChanged
    """The latest change that made it as grave as it became: the one that explains it."""
    latency_s: float | None = None
    """From the sending of the turn to the alert's arrival here."""
    causes: list[str] = []


class DemoState(Struct):
    """Everything that the summary counts. Repeats of an event (same id) change nothing."""

    sessions: dict[str, SessionSeen]
    alerts: dict[str, AlertSeen] = {}
    """By alert id, in the order of their raising."""
    counts: Counter[type[OutputEvent]] = field(default_factory=Counter)
    """How many events of each kind came."""
    topics: Counter[str] = field(default_factory=Counter)
    """Cause → changes of topics, of all sessions."""
    users: UsersSeen = field(default_factory=UsersSeen)
    spaces: SpacesSeen = field(default_factory=SpacesSeen)
    sent_turns: int = 0
    planned_turns: int = 0
    sent_at_s: dict[tuple[str, int], float] = {}
    """(session, turn) → when it was handed to the producer, monotonic seconds."""
    lag: int | None = None
    """Records of turns.v1 that the sessions role has not committed; None: not known yet."""
    archived: int | None = None
    """Records of all topics that the archive has landed; None: not known yet."""
    elapsed_s: float = 0.0
    seen: set[str] = set()
    _progress: deque[tuple[float, int]] = field(default_factory=lambda: deque([(0.0, 0)]))

    @classmethod
    def of(cls, conversations: Iterable[DemoConversation]) -> DemoState:
        """Before the first turn."""
        sessions = {c.session_id: SessionSeen(c) for c in conversations}
        return cls(sessions, planned_turns=sum(len(s.conversation.turns) for s in sessions.values()))

    @property
    def folded_turns(self) -> int:
        """Turns that the profiles account for."""
        return sum(session.turns for session in self.sessions.values())

    @property
    def turns_per_s(self) -> float:
        """Turns folded per second, over the last seconds."""
        (first_s, first), (last_s, last) = self._progress[0], self._progress[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else 0.0

    def alert_of(self, session_id: str) -> AlertSeen | None:
        """The session's latest alert."""
        return next((a for a in reversed(self.alerts.values()) if a.latest.session_id == session_id), None)

    def tick(self, elapsed_s: float) -> None:
        """Move the clock."""
        self.elapsed_s = elapsed_s
        self._progress.append((elapsed_s, self.folded_turns))
        while len(self._progress) > 2 and elapsed_s - self._progress[1][0] >= _RATE_OVER_S:  # noqa: PLR2004 - a pair
            self._progress.popleft()

    def sending(self, session_id: str, turn: int, at_s: float) -> None:
        """A turn is on its way."""
        self.sent_turns += 1
        self.sent_at_s[session_id, turn] = at_s

    def take(self, event: OutputEvent, at_s: float) -> bool:
        """Fold one event that arrived at `at_s`, monotonic seconds; returns whether it was new."""
        if event.id in self.seen:
            return False
        self.seen.add(event.id)
        self.counts[type(event)] += 1
        match event:
            case ProfileUpdated(session_id=session_id) if session_id in self.sessions:
                self.sessions[session_id].turns = event.turn_count
            case AlertChanged():
                self._take_alert(event, at_s)
            case TopicChanged():
                self._take_topic(event)
            case EpisodeClosed(session_id=session_id) if session_id in self.sessions:
                self.sessions[session_id].ended = True
            case FactChanged() | EpisodeCompressed() | UserMemoryChanged():
                self.users.take(event)
            case AppMemoryChanged() | AppMemoriesCompacted() | AppMemoriesChanged():
                self.spaces.take(event)
        return True

    def _take_alert(self, change: AlertChanged, at_s: float) -> None:
        alert = self.alerts.get(change.alert_id)
        if alert is None:
            sent_s = self.sent_at_s.get((change.session_id, change.turn))
            latency_s = None if sent_s is None else max(0.0, at_s - sent_s)
            self.alerts[change.alert_id] = AlertSeen(change, change, change, latency_s, [change.cause])
            return
        alert.latest = change
        if change.cause == "worsened":
            alert.gravest = change
        alert.causes = [*alert.causes, change.cause]

    def _take_topic(self, change: TopicChanged) -> None:
        self.topics[change.cause] += change.cause != "merged" or not change.kept  # a merge is told of both
        if change.session_id in self.sessions:
            self.sessions[change.session_id].topics.append(change)
