"""An archive of two weeks with planted patterns, for tests of the mining jobs: real folds, real landing, no Kafka.

`archive(folder)` builds it in ten seconds, the fixture `planted` once a run; `mined` runs a job over it. 140
sessions of 31 users in three apps, ten on each of 14 days from `FIRST` on; the second week is `WEEK`. Users come round
so that each kind of session has 14 users.
By the number of the session in its day, 0-9 (its app is the number modulo three, see `APPS`):

* 0 (support): risk rises late, after 70 % of the session.
* 1 (tutor): risk rises early, after 25 %; from the second week on so does 4.
* 2 (planner): risk climbs slowly and does not get far.
* 9 (support): risk is high at first and falls.
* 3 (support): two matters in turn, three messages each (topic cycling). All others are calm, and of one matter.
* 5-8 on the days 8-10: one message each of the same campaign (12 sessions, 12 users), with a risk of 0.7.
* 6 and 8 in the second week: a matter that is new, the battery.
* 2, 5 and 8 (planner) in the second week: messages are twice as long, the risk is 0.06 higher.

Where risk rises the second question supposes something; while it rises people press (`PRESSING`) and are refused. Of
users: the tone of every third flips and flips back, every fourth has one value under two keys, every fifth a fact that
nobody confirmed for four months. Alerts of even days are labelled: those that rise as escalating, the others not. No
model judges here: alerts have no probability.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from aiokafka import TopicPartition
from msgspec import Struct

from jobs.analyse.mining.job import Job, JobResult, Period
from jobs.analyse.mining.run import run
from jobs.analyse.mining.source import MiningSource
from models.entities import TOPIC_OF
from models.events import (
    AlertChanged,
    AlertLabelled,
    FactCategory,
    FactCause,
    FactChanged,
    OutputEvent,
    PastFact,
    Position,
    Role,
    SessionEnded,
    Turn,
)
from models.events.ids import event_id
from models.events.topics import TURNS
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import Policy
from models.policy.archive import (
    AnonymityPolicy,
    ArchivePolicy,
    DriftMining,
    EscalationMining,
    OverviewMining,
    TopicMining,
)
from models.risk.scorer import RuleScorer
from models.wire.codec import encode
from models.wire.envelope import key_of
from streams.archive.buffer import LandingBuffer, Move
from streams.archive.catalog import LakePaths, reading
from streams.archive.writer import LakeWriter
from streams.inference.wordllama import WordLlamaEmbedder
from tests.support.entity_driver import Entities
from tests.support.lake_records import PREFIX, Record, paths, take
from tests.support.mined_plan import BEGIN, DAYS, FIRST, PLAN, SESSIONS_A_DAY, USERS, Planted, inputs
from tests.support.user_partition import keep

WEEK = Period(FIRST + timedelta(days=7), FIRST + timedelta(days=13))
"""The second of two; the first is the one before."""
_POLICY = ArchivePolicy()
READY = ArchivePolicy(
    anonymity=AnonymityPolicy(min_sessions=4, min_users=4),
    overview=OverviewMining(significance=0.05),
    escalation=EscalationMining(significance=0.02),
    drift=DriftMining(significance=0.02),
    topics=TopicMining(significance=0.05),
)
"""Of 31 users in two weeks each job has something to say."""


def archive(folder: Path) -> LakePaths:
    """Build it."""
    folder.mkdir(parents=True, exist_ok=True)
    _build(folder)
    return paths(folder)


def _build(folder: Path) -> None:
    place, log, fold = paths(folder), _Log(), _Fold()
    for day in range(DAYS):
        for planted in PLAN[day * SESSIONS_A_DAY : (day + 1) * SESSIONS_A_DAY]:
            outputs = fold(list(inputs(planted)), log)
            log.put(_labels(planted, outputs))
        evening = BEGIN + timedelta(days=day, hours=20)
        log.put(_facts(day, evening), evening)
    with closing(LakeWriter(place)) as writer:
        writer.land(log.buffer, now=BEGIN + timedelta(days=DAYS))


def landed(folder: Path, sessions: Iterable[Iterable[Turn | SessionEnded]]) -> LakePaths:
    """An archive of other sessions, each with all that follows from it."""
    place, log, fold = paths(folder), _Log(), _Fold()
    for session in sessions:
        fold(list(session), log)
    with closing(LakeWriter(place)) as writer:
        writer.land(log.buffer, now=BEGIN + timedelta(days=DAYS))
    return place


def mined(
    job: Job, place: LakePaths, root: Path, *, period: Period = WEEK, policy: ArchivePolicy = _POLICY
) -> JobResult:
    """Run a job over an archive; what it keeps is in `root`."""
    with reading(place) as con:
        return run(job, MiningSource(con), period, root=root, policy=policy)


class _Log:
    """Gives records their offsets and gathers them."""

    def __init__(self) -> None:
        self.buffer = LandingBuffer()
        self._next: defaultdict[str, int] = defaultdict(int)

    def put(self, events: Iterable[Any], time: datetime | None = None) -> list[Position]:
        """Append records at a time, by default their own; gives their places."""
        places = []
        for event in events:
            topic = TOPIC_OF[type(event)]
            name = topic.full_name(PREFIX)
            offset = self._next[name]
            appended_at = int((time or event.timestamp).timestamp() * 1000)
            key = event.session_id.encode() if topic is TURNS else key_of(event)
            take(self.buffer, topic, Record(0, offset, appended_at, key, encode(event)))
            assert not self.buffer.skipped
            self.buffer.moves[TopicPartition(name, 0)] = Move(None, 0, offset + 1)
            self._next[name] = offset + 1
            places.append(Position(name, 0, offset))
        return places


class _Fold:
    """The sessions role's way of one partition: taken in, folded, told."""

    def __init__(self) -> None:
        policy = Policy()
        self._embedder, self._scorer = WordLlamaEmbedder(), RuleScorer()
        self._entities: Entities = {}
        self._fold = PartitionFold(self._entities, policy)

    def __call__(self, events: Sequence[Turn | SessionEnded], log: _Log) -> list[OutputEvent]:
        """Put the events and all that follows from them; gives the latter."""
        arrivals = []
        for event, position in zip(events, log.put(events), strict=True):
            if isinstance(event, Turn) and event.role is Role.USER:
                risk, vector = self._scorer.score([event])[0], self._embedder.embed([event.content])[0]
                arrivals.append(DecodedArrival(event, position, event.timestamp, float(risk), vector))
            else:
                arrivals.append(DecodedArrival(event, position, event.timestamp))
        outputs = keep(self._entities, self._fold, arrivals)
        log.put(outputs)
        return outputs


def _labels(planted: Planted, outputs: Iterable[OutputEvent]) -> Iterator[AlertLabelled]:
    raised = [output for output in outputs if isinstance(output, AlertChanged) and output.cause == "raised"]
    for alert in raised if planted.day % 2 == 0 else []:
        yield AlertLabelled(
            session_id=planted.session_id,
            timestamp=planted.begun + timedelta(minutes=50),
            alert_id=alert.alert_id,
            escalating=planted.rises,
        )


def _facts(day: int, evening: datetime) -> Iterator[FactChanged]:
    """Changes of the facts of a third of the users, in turn; the whole round takes three days."""
    for user in range(day % 3, USERS, 3):
        said = _Said(user, day, evening)
        if day < 3:
            yield said.fact("city", f"city {user % 7}", category=FactCategory.IDENTITY)
            if user % 4 == 0:
                yield said.fact("language", "Danish", category=FactCategory.IDENTITY)
                yield said.fact("mother tongue", "danish", category=FactCategory.IDENTITY)
            if user % 5 == 0:
                yield said.fact("employer", "a bakery", category=FactCategory.IDENTITY, age=timedelta(days=120))
        tones = ["brief", "detailed"] if user % 3 == 0 else ["brief"]
        yield said.fact("tone", tones[day // 3 % len(tones)], earlier=[tones[n % len(tones)] for n in range(day // 3)])


class _Said(Struct, frozen=True):
    """What a user's facts of an evening have in common."""

    user: int
    day: int
    evening: datetime

    def fact(
        self,
        key: str,
        value: str,
        *,
        category: FactCategory = FactCategory.PREFERENCE,
        age: timedelta = timedelta(0),
        earlier: Sequence[str] = (),
    ) -> FactChanged:
        """One change: the same value again confirms it."""
        cause: FactCause = "stored" if not earlier else "confirmed" if earlier[-1] == value else "updated"
        source = Position(f"{PREFIX}.commands.v1", 0, 1_000 * self.day + self.user)
        session = next(each for each in PLAN if each.user_id == f"u-{self.user:02}")
        changed = [past for past, following in pairwise([*earlier, value]) if past != following]
        return FactChanged(
            id=event_id("fact_changed", f"{session.user_id} {key}", source),
            session_id=session.session_id,
            user_id=session.user_id,
            app_id=session.app_id,
            timestamp=self.evening - age,
            source=source,
            category=category,
            key=key,
            value=value,
            confidence=0.9,
            importance=0.5,
            active=True,
            cause=cause,
            valid_from=self.evening - age,
            valid_until=None,
            turn=0,
            extracted_by="rules",
            history=[
                PastFact(value=past, confidence=0.9, valid_from=BEGIN, valid_until=self.evening) for past in changed
            ],
        )
