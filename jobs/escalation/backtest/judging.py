"""Judging of traffic by policies and scorers: the roles' own fold, and of each session highest score and alerts."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from aiokafka.structs import ConsumerRecord
from msgspec import Struct, field

from jobs.escalation.backtest.contenders import Contender
from jobs.escalation.backtest.traffic import LabelledTraffic, labelled_traffic
from jobs.shared.dialogues import judging_policy, read_dialogues, read_pools
from models.events import (
    AlertChanged,
    AlertLabelled,
    AnyTurn,
    DeadLetter,
    OutputEvent,
    ProfileUpdated,
    Role,
    SessionEnded,
    SessionErased,
    SessionName,
    Turn,
)
from models.partition.sessions import DecodedArrival
from models.policy import Policy
from streams.kafka.records import appended_ms, record_of_input
from streams.oracle.replay import ReplayFeed, SessionReplay
from streams.ports import Embedder


class RaisedAlert(Struct, frozen=True, gc=False):
    """An alert when it was raised."""

    alert_id: str
    turn: int
    turns_seen: int
    score: float


class JudgedSession(Struct, frozen=True):
    """A session as one contender sees it.

    Attributes:
        turns: Different turn numbers, of all roles.
        escalating: Whether any of its alerts was right, by the latest label of each; None: nobody said.
        highest: Score, after any of its turns.
        first_risk: The scorer's, of its first user turn alone: what can be told without a memory. 0 without one.
        alerts: In the order in which they were raised.
    """

    session_id: str
    app_id: str
    started_at: datetime
    ended_at: datetime
    first_turn: int
    turns: int
    escalating: bool | None
    highest: float
    first_risk: float
    alerts: tuple[RaisedAlert, ...]

    @property
    def first(self) -> RaisedAlert | None:
        """The alert by which it was detected."""
        return self.alerts[0] if self.alerts else None


class _SessionSoFar(Struct):
    started_at: datetime
    ended_at: datetime
    partition: int
    turns: set[int] = field(default_factory=set)
    highest: float = 0.0
    first_user: tuple[int, float] | None = None
    alerts: list[AlertChanged] = field(default_factory=list)
    open: bool = True


class JudgingReplay(SessionReplay):
    """The fold of sessions, of which only what a judgement needs is kept.

    Memories are switched off: nothing of them enters a score, and the fold is faster without.
    """

    def __init__(self, contender: Contender, embedder: Embedder) -> None:
        super().__init__(judging_policy(contender.policy), embedder, contender.scorer)
        self.dead_letters = 0
        self._seen: dict[SessionName, _SessionSoFar] = {}
        self._labels: defaultdict[SessionName, dict[str, bool]] = defaultdict(dict)
        self._ends: dict[int, ConsumerRecord] = {}

    def fold(self, partition: int, records: Sequence[ConsumerRecord]) -> None:
        """Fold records of a partition, in log order."""
        self._ends[partition] = records[-1]
        super().fold(partition, records)

    def judged(self) -> list[JudgedSession]:
        """Every session that spoke and was not erased, in the order of their beginnings.

        Sessions that are still open are ended first, for a profile tells the scores of its last turns.
        """
        self._end_open_sessions()
        found = [self._judged(name, seen) for name, seen in self._seen.items()]
        return sorted(found, key=lambda each: (each.started_at, each.session_id))

    def _note(self, arrival: DecodedArrival) -> None:
        event = arrival.event
        if isinstance(event, AnyTurn):
            at = event.timestamp.astimezone(UTC)
            name = SessionName(event.app_id, event.session_id)
            seen = self._seen.get(name)
            if seen is None:
                seen = self._seen[name] = _SessionSoFar(at, at, arrival.position.partition)
            seen.started_at, seen.ended_at = min(seen.started_at, at), max(seen.ended_at, at)
            turn = event.turn if isinstance(event, Turn) else max(seen.turns, default=-1) + 1
            seen.turns.add(turn)
            seen.open = True
            if event.role is Role.USER and (seen.first_user is None or turn < seen.first_user[0]):
                seen.first_user = (turn, arrival.risk or 0.0)
        elif isinstance(event, AlertLabelled):
            for name in self._named(event):
                self._labels[name][event.alert_id] = event.escalating
        elif isinstance(event, SessionErased):
            for name in self._named(event):
                self._seen.pop(name, None)
                self._labels.pop(name, None)

    def _named(self, event: AlertLabelled | SessionErased) -> list[SessionName]:
        """Sessions that an event means; one that names no app, as earlier releases wrote it, means all of its id."""
        if event.app_id:
            return [SessionName(event.app_id, event.session_id)]
        return [name for name in self._seen if name.session_id == event.session_id]

    def _keep(self, events: Sequence[OutputEvent]) -> None:
        for event in events:
            if isinstance(event, DeadLetter):
                self.dead_letters += 1
            elif isinstance(event, ProfileUpdated | AlertChanged):
                seen = self._seen.get(SessionName(event.app_id, event.session_id))
                if seen is None:
                    continue
                if isinstance(event, ProfileUpdated):
                    seen.highest = max([seen.highest, *(point.score for point in event.risk_points)])
                    seen.open = event.open
                elif event.cause == "raised":
                    seen.alerts.append(event)

    def _end_open_sessions(self) -> None:
        ending: defaultdict[int, list[ConsumerRecord]] = defaultdict(list)
        for name, seen in self._seen.items():
            if seen.open:
                last, records = self._ends[seen.partition], ending[seen.partition]
                end = SessionEnded(**name._asdict(), timestamp=seen.ended_at)
                place = {"partition": seen.partition, "offset": last.offset + 1 + len(records)}
                records.append(record_of_input(end, last.topic, at_ms=appended_ms(last), **place))
        for partition, records in ending.items():
            self.fold(partition, records)

    def _judged(self, name: SessionName, seen: _SessionSoFar) -> JudgedSession:
        labels = self._labels.get(name)
        return JudgedSession(
            **name._asdict(),
            started_at=seen.started_at,
            ended_at=seen.ended_at,
            first_turn=min(seen.turns),
            turns=len(seen.turns),
            escalating=any(labels.values()) if labels else None,
            highest=seen.highest,
            first_risk=seen.first_user[1] if seen.first_user else 0.0,
            alerts=tuple(_raised(alert, seen.turns) for alert in seen.alerts),
        )


def judge(
    traffic: LabelledTraffic,
    contenders: Sequence[Contender],
    embedder: Embedder,
    progress: Callable[[int], None] = lambda _: None,
) -> list[JudgingReplay]:
    """Fold the traffic for each contender, all of them in one reading."""
    judgings = [JudgingReplay(contender, embedder) for contender in contenders]
    feeds = [ReplayFeed(judging) for judging in judgings[:-1]] + [ReplayFeed(judgings[-1], progress=progress)]
    for record in traffic.records:
        for feed in feeds:
            feed.take(record)
    for feed in feeds:
        feed.finish()
    return judgings


def _raised(alert: AlertChanged, turns: set[int]) -> RaisedAlert:
    return RaisedAlert(
        alert_id=alert.alert_id,
        turn=alert.turn,
        turns_seen=sum(turn <= alert.turn for turn in turns),
        score=alert.score,
    )


def selected(
    sessions: Iterable[JudgedSession],
    *,
    apps: Collection[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[JudgedSession]:
    """Sessions of some apps that began within a time; no app and no bound: all of them."""
    return [
        each
        for each in sessions
        if (not apps or each.app_id in apps)
        and (since is None or each.started_at >= since)
        and (until is None or each.started_at < until)
    ]


def judged_left_out(file: Path, texts: Sequence[Path], policy: Policy, embedder: Embedder) -> list[JudgedSession]:
    """Every dialogue of the file judged by a scorer trained without its family, in the order of families.

    The scorers learn from pools of texts besides.

    Raises:
        ConfigurationError: All dialogues are of one family: it cannot be left out.
    """
    from jobs.lab.eval.escalation import judges_left_out, require_two
    from jobs.lab.train.scorer import trainer_with_own
    from jobs.shared.output import progress_bar
    from streams.inference.wordllama import WordLlamaEmbedder

    dialogues = read_dialogues(file)
    require_two(dialogues, instead="Add others, or judge by a scorer as it is.")
    trainer = trainer_with_own([*dialogues, *read_pools(texts, dialogues)], WordLlamaEmbedder())
    judged: list[JudgedSession] = []
    with progress_bar("families left out") as progress:
        for members, judge_of in judges_left_out(dialogues, trainer, policy, progress):
            contender = Contender(judge_of.policy, judge_of.scorer)
            (judging,) = judge(labelled_traffic(file.name, members), [contender], embedder)
            judged += judging.judged()
    return judged
