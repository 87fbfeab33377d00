"""State of the demo at a moment: a fold over Turntide's own output events, drawn by the view and the report."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from msgspec import Struct, field

from jobs.demo.conversations import Conversation
from jobs.demo.projects import ProjectNews, ProjectsSeen, is_milestone
from jobs.demo.spaces import SpaceNews, SpacesSeen
from jobs.demo.users import UserNews, UsersSeen
from models.events import (
    AlertChanged,
    AlertStatus,
    AppMemoriesChanged,
    AppMemoriesCompacted,
    AppMemoryChanged,
    EpisodeClosed,
    EpisodeCompressed,
    FactChanged,
    Mode,
    OutputEvent,
    ProfileUpdated,
    ProjectChanged,
    ProjectItemChanged,
    RiskPoint,
    SegmentCompacted,
    SignalShare,
    TopicChanged,
    UserMemoryChanged,
    WindowClosed,
)

_RECENT = 12
_TOLD_OF_TOPICS = frozenset({"compacted", "unpacked", "merged", "evicted"})
"""What is worth a line; topics start and are left all the time."""
_RATE_OVER_S = 5.0
_NOTABLE_SCORE = 0.15
"""Below it a session's strongest signal says nothing."""


Memory = SegmentCompacted | TopicChanged | EpisodeClosed
"""What is shown of memory."""
News = UserNews | SpaceNews | ProjectNews
"""What is shown of users, apps and projects."""


class SessionSeen(Struct):
    """One session, as its profiles show it."""

    conversation: Conversation
    turns: int = 0
    mode: Mode = Mode.CALM
    score: float = 0.0
    signals: list[SignalShare] = []
    points: dict[int, RiskPoint] = {}
    """Turn number → its risk, for the scored turns."""
    segments: int = 0
    topics: list[TopicChanged] = []
    """Every change of its topics, in their order."""
    episode: EpisodeClosed | None = None

    @property
    def risks(self) -> list[float]:
        """Risk of each scored turn, in order, 0-1."""
        return [self.points[turn].risk for turn in sorted(self.points)]

    @property
    def scores(self) -> list[float]:
        """The session's score after each scored turn, in order, 0-1."""
        return [self.points[turn].score for turn in sorted(self.points)]

    @property
    def signal(self) -> str | None:
        """The signal with the largest share of a score worth naming."""
        if not self.signals or self.score < _NOTABLE_SCORE:
            return None
        return max(self.signals, key=lambda signal: signal.share).name


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
    """Everything the view shows. Repeats of an event (same id) change nothing."""

    sessions: dict[str, SessionSeen]
    alerts: dict[str, AlertSeen] = {}
    """By alert id, in the order of their raising."""
    memories: deque[Memory] = field(default_factory=lambda: deque(maxlen=_RECENT))
    news: deque[News] = field(default_factory=lambda: deque(maxlen=_RECENT))
    segments: int = 0
    topics: Counter[str] = field(default_factory=Counter)
    """Cause → changes of topics, of all sessions."""
    episodes: int = 0
    users: UsersSeen = field(default_factory=UsersSeen)
    spaces: SpacesSeen = field(default_factory=SpacesSeen)
    projects: ProjectsSeen = field(default_factory=ProjectsSeen)
    windows: int = 0
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
    def of(cls, conversations: Iterable[Conversation]) -> DemoState:
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
        """Move the clock of the view."""
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
        if isinstance(event, ProfileUpdated):
            self._take_profile(event)
        elif isinstance(event, AlertChanged):
            self._take_alert(event, at_s)
        elif isinstance(event, WindowClosed):
            self.windows += 1
        elif isinstance(event, TopicChanged):
            self._take_topic(event)
        elif isinstance(event, SegmentCompacted | EpisodeClosed):
            self._take_memory(event)
        else:
            self._take_remembered(event)
        return True

    def _take_profile(self, profile: ProfileUpdated) -> None:
        session = self.sessions.get(profile.session_id)
        if session is None:
            return
        session.turns = profile.turn_count
        session.mode, session.score, session.signals = profile.mode, profile.score, profile.signals
        session.points = session.points | {point.turn: point for point in profile.risk_points}

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
        session = self.sessions.get(change.session_id)
        if session is not None:
            session.topics.append(change)
        if is_told(change):
            self.memories.append(change)

    def _take_memory(self, memory: SegmentCompacted | EpisodeClosed) -> None:
        self.memories.append(memory)
        session = self.sessions.get(memory.session_id)
        if isinstance(memory, EpisodeClosed):
            self.episodes += 1
            if session is not None:
                session.episode = memory
            return
        self.segments += 1
        if session is not None:
            session.segments += 1

    def _take_remembered(self, event: OutputEvent) -> None:
        """Of users, apps and projects."""
        if isinstance(event, FactChanged | EpisodeCompressed | UserMemoryChanged):
            self.users.take(event)
        elif isinstance(event, AppMemoryChanged | AppMemoriesCompacted | AppMemoriesChanged):
            self.spaces.take(event)
        elif isinstance(event, ProjectItemChanged | ProjectChanged):
            self.projects.take(event)
        if isinstance(event, UserNews | SpaceNews) or (isinstance(event, ProjectItemChanged) and is_milestone(event)):
            self.news.append(event)


def is_told(change: TopicChanged) -> bool:
    """Whether the change of a topic is worth a line."""
    return change.cause in _TOLD_OF_TOPICS and not (change.cause == "merged" and change.kept)


def is_open(alert: AlertSeen) -> bool:
    """Whether somebody should still look at it."""
    return alert.latest.status is not AlertStatus.RESOLVED
