"""Judging of traffic by policies and scorers: the roles' own fold, and of each session highest score and alerts.

Traffic of a back-test or a calibration: the archive, a labelled file or the live topic, as a log of turns.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord
from msgspec import Struct, field

from jobs.escalation.backtest.contenders import Contender
from jobs.shared.dialogues import (
    BETWEEN_TURNS,
    LabelledDialogue,
    judging_policy,
    read_dialogues,
    read_pools,
    turns_of_dialogue,
)
from jobs.shared.output import Progress, progress_bar
from models.errors import ConfigurationError
from models.events import (
    AlertChanged,
    AlertLabelled,
    AnyTurn,
    DeadLetter,
    InputEvent,
    OutputEvent,
    ProfileUpdated,
    Role,
    SessionEnded,
    SessionErased,
    SessionName,
    Turn,
)
from models.events.topics import TURNS
from models.partition.sessions import DecodedArrival
from models.policy import Policy
from streams.kafka.client import consumer, require_topic
from streams.kafka.records import appended_ms, record_of_input
from streams.oracle.replay import SessionReplay
from streams.ports import Embedder
from streams.settings import Settings

BEGINS = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""Event time of the first labelled turn: a fixed one, so that the same file gives the same figures."""
_POLL_MS = 500


class LabelledTraffic(Struct, frozen=True):
    """Records of `turns.v1`, with labels among them.

    Attributes:
        name: What it is, for people.
        records: By partition and offset.
        count: How many records there are.
        timed: Whether event times are those of the conversations; else there is no rate by day.
    """

    name: str
    records: Iterable[ConsumerRecord]
    count: int
    timed: bool


Opening = Callable[[], AbstractContextManager[LabelledTraffic]]
"""Opens the same traffic again: it is read once for each judgement of it."""


def traffic_of(settings: Settings, data: Path | None) -> Opening:
    """The labelled file, or the archive where none is named.

    What is opened raises `ConfigurationError` where the file cannot be used, or the archive is missing or empty.
    """
    topic = TURNS.full_name(settings.topic_prefix)
    if data is None:
        return lambda: _archived(settings, topic)
    return lambda: nullcontext(labelled_traffic(data.name, read_dialogues(data), topic))


def labelled_traffic(name: str, dialogues: Sequence[LabelledDialogue], topic: str = TURNS.name) -> LabelledTraffic:
    """Labelled dialogues as the log they would have been: the records of one partition, one after another.

    A dialogue's source is its app, and its session its user's only one. Turns are a minute apart, further than turns
    that a policy merges. The label follows the last of them as somebody would have given it, and the session ends
    before the next begins: so none times out or is evicted because others are in the file.
    """
    count = sum(len(dialogue.turns) + 2 for dialogue in dialogues)
    return LabelledTraffic(name, _as_log(dialogues, topic), count, timed=False)


def _as_log(dialogues: Sequence[LabelledDialogue], topic: str) -> Iterator[ConsumerRecord]:
    offset, now = 0, BEGINS
    for dialogue in dialogues:
        turns = turns_of_dialogue(dialogue, now, dialogue.numbers)
        said = turns[-1].timestamp + BETWEEN_TURNS
        name: dict[str, Any] = {"session_id": dialogue.session_id, "app_id": turns[-1].app_id, "timestamp": said}
        label = AlertLabelled(**name, alert_id="", escalating=dialogue.escalating)
        events: list[InputEvent] = [*turns, label, SessionEnded(**name)]
        for event in events:
            yield record_of_input(event, topic, offset=offset, at_ms=round(event.timestamp.timestamp() * 1000))
            offset += 1
        now = said + BETWEEN_TURNS


@contextmanager
def _archived(settings: Settings, topic: str) -> Iterator[LabelledTraffic]:
    from streams.archive.catalog import paths_of, reading
    from streams.archive.inputs import archived_count, archived_inputs

    with reading(paths_of(settings)) as lake:
        count = archived_count(lake)
        if not count:
            raise ConfigurationError(
                "the archive has no turns yet: let the archive role run, or give a file with --data"
            )
        yield LabelledTraffic("archive", archived_inputs(lake, topic), count, timed=True)


def watched(settings: Settings, seconds: float) -> Opening:
    """Read the live topic for some time, and give what came as traffic. Ctrl-C ends it without a result.

    Raises:
        ConfigurationError: There is no such topic, or nothing was said.
        StoreUnavailable: Kafka does not answer.
    """
    with progress_bar("watching, seconds") as progress:
        records = asyncio.run(_read(settings, seconds, progress))
    if not records:
        raise ConfigurationError(f"no record arrived within {seconds:g} s: does a producer send to {TURNS.name}?")
    records.sort(key=lambda record: (record.partition, record.offset))
    return lambda: nullcontext(LabelledTraffic(f"{seconds:g} s of live traffic", records, len(records), timed=True))


async def _read(settings: Settings, seconds: float, progress: Progress) -> list[ConsumerRecord]:
    topic = TURNS.full_name(settings.topic_prefix)
    partitions = [TopicPartition(topic, number) for number in await require_topic(settings.kafka, topic)]
    records: list[ConsumerRecord] = []
    async with consumer(settings.kafka) as client:
        client.assign(partitions)
        for partition, end in (await client.end_offsets(partitions)).items():
            client.seek(partition, end)
        began = monotonic()
        while (passed := monotonic() - began) < seconds:
            left_ms = max(1, round((seconds - passed) * 1000))
            for batch in (await client.getmany(timeout_ms=min(_POLL_MS, left_ms))).values():
                records += batch
            progress(round(monotonic() - began), round(seconds))
    return records


def in_utc(time: datetime | None) -> datetime | None:
    """A time of the command line, which has no zone, as UTC."""
    return None if time is None else time.replace(tzinfo=UTC)


def require_folder(file: Path) -> None:
    """Say before hours of folding that a result could not be written.

    Raises:
        ConfigurationError: The file's folder does not exist.
    """
    if not file.parent.is_dir():
        raise ConfigurationError(f"cannot write {file}: there is no folder {file.parent}")


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
    judgings[-1].progress = progress
    for record in traffic.records:
        for judging in judgings:
            judging.take(record)
    for judging in judgings:
        judging.result()
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


def judged_left_out(
    file: Path, texts: Sequence[Path], policy: Policy, embedder: Embedder, reader: bytes | None = None
) -> list[JudgedSession]:
    """Every dialogue of the file judged by a scorer trained without its family, in the order of families.

    The scorers learn from pools of texts besides; a second reader, which has learnt of no family, stands beside each.

    Raises:
        ConfigurationError: All dialogues are of one family: it cannot be left out.
    """
    from jobs.lab.eval.escalation import by_family, judging_by, require_two
    from jobs.lab.train.scorer import trainer_with_own
    from streams.inference.trained_scorer import reader_of
    from streams.inference.wordllama import WordLlamaEmbedder

    dialogues = read_dialogues(file)
    require_two(dialogues, instead="Add others, or judge by a scorer as it is.")
    trainer = trainer_with_own([*dialogues, *read_pools(texts, dialogues)], WordLlamaEmbedder())
    beside = reader_of(reader, trainer.embedder)
    judged: list[JudgedSession] = []
    with progress_bar("families left out") as progress:
        for name, members in by_family(dialogues, progress):
            judge_of = judging_by(trainer.model_without(name), policy, trainer.embedder, beside)
            contender = Contender(judge_of.policy, judge_of.scorer)
            (judging,) = judge(labelled_traffic(file.name, members), [contender], embedder)
            judged += judging.judged()
    return judged
