"""Oracles: expected state and outputs, computed only from a log and its pure fold.

Each role of `FOLDED` has one: it reads the role's source from start to current end and folds each partition as the role
does, without the role's state, offsets or outputs; a record that breaks the fold becomes a dead letter, as in the role.
The role's results must be equal: state byte for byte, outputs id by id. The log of `commands.v1` is used unchanged,
including records that the sessions role repeated after a crash.
"""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any, Generic, NamedTuple, TypeVar

from aiokafka.structs import ConsumerRecord
from msgspec import Struct

from models.entities import ERASURES, KIND_OF, REGISTRY, SESSION, entity_key
from models.erasure import ErasureSubject, sessions_of
from models.events import (
    DeadLetter,
    OutputEvent,
    Position,
    SessionErased,
    SessionName,
    SpaceErased,
    Turn,
    TurnNumbered,
    UserErased,
    UserTurnAdded,
)
from models.events.topics import COMMANDS, MEMORY_STATE, SESSION_STATE, TURNS, Topic
from models.partition.commands import MemoryPartitionFold
from models.partition.log_fold import PartitionFolded, folded_offset
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import Policy
from models.wire.arrival import Command
from models.wire.flood import FloodGauge
from streams.inference.intake import Decoded, Intake, decode_commands, unfoldable
from streams.kafka.client import read_to_end
from streams.ports import Embedder, TurnScorer
from streams.settings import Settings
from streams.state.memory import MemoryTable

Entities = Mapping[str, Mapping[str, bytes]]
"""State of one partition: entity (session, user or space of memories) → part → bytes."""


class Folded(NamedTuple):
    """A role that folds the log `source` into state, stored in `changelog`."""

    role: str
    source: Topic
    changelog: Topic

    @property
    def outputs(self) -> tuple[Topic, ...]:
        """Public topics that it writes; dead letters of all folding roles are listed with the first role."""
        return tuple(topic for topic in REGISTRY.topics if topic.public and topic.owner == self.role)


SESSIONS = Folded("sessions", TURNS, SESSION_STATE)
USERS = Folded("memory", COMMANDS, MEMORY_STATE)
FOLDED = (SESSIONS, USERS)
"""Folding roles; outputs of one are inputs of the next."""
OUTPUT_TOPICS = tuple(topic for each in FOLDED for topic in each.outputs)


class Forgotten:
    """Collects the erasures of a log; `subjects` are users and apps that were erased as a whole.

    A fold reads erasures in its log, so its state needs no special rule. Outputs from before an erasure were emitted,
    but compacted topics, archive and index have lost them. Outputs after it, also of the same session, must exist.
    """

    def __init__(self) -> None:
        self.subjects: set[ErasureSubject] = set()
        self._sessions: set[SessionName] = set()
        self._entities: set[str] = set()
        self._until: dict[int, int] = {}

    def note(self, erasure: Struct, position: Position) -> None:
        """Record an erasure of the log: of sessions, or of the entity of its key."""
        sessions = getattr(erasure, "session_ids", None) or [getattr(erasure, "session_id", "")]
        if any(sessions):
            app_id = getattr(erasure, "app_id", "")
            self._sessions.update(SessionName(app_id, session_id) for session_id in sessions)
        else:
            self._entities.add(entity_key(erasure))
        match erasure:
            case UserErased():
                self.subjects.add(ErasureSubject("user", erasure.app_id, erasure.user_id))
            case SpaceErased(user_id=""):
                self.subjects.add(ErasureSubject("app", erasure.app_id))
        self._until[position.partition] = max(position.offset, self._until.get(position.partition, -1))

    def among(self, outputs: Mapping[str, OutputEvent]) -> frozenset[str]:
        """Ids of the outputs that erasures of this log remove: caused before or by them."""
        if not self._until:
            return frozenset()
        told = (event for event in outputs.values() if not isinstance(event, DeadLetter))
        known = {SessionName(event.app_id, event.session_id) for event in told}
        # An erasure that names no app is of an earlier release, and takes the sessions of every app.
        named = self._sessions | {each for each in known if _unbound(each) in self._sessions}
        subject = ErasureSubject("session", sessions=sessions_of(named, known)).follow(outputs.values())
        return frozenset(
            event_id
            for event_id, event in outputs.items()
            if self._is_before(event) and (subject.concerns(event) or self._is_of_entity(event))
        )

    def _is_before(self, event: OutputEvent) -> bool:
        # A refused record may stand on any partition.
        return isinstance(event, DeadLetter) or event.source.offset <= self._until.get(event.source.partition, -1)

    def _is_of_entity(self, event: OutputEvent) -> bool:
        return KIND_OF[type(event)] is not SESSION and entity_key(event) in self._entities


def _unbound(session: SessionName) -> SessionName:
    """The session without its app."""
    return SessionName("", session.session_id)


def without_session(event: Struct, subjects: frozenset[ErasureSubject]) -> bool:
    """Whether an output without a session, which no session's erasure covers, belongs to one of the subjects."""
    return not getattr(event, "session_id", "") and any(subject.concerns(event) for subject in subjects)


_BATCH_RECORDS = 1_000
_Arrival = TypeVar("_Arrival", DecodedArrival, Command)


class TurnKey(NamedTuple):
    """A turn by session and number."""

    app_id: str
    session_id: str
    turn: int


class Replayed(NamedTuple):
    """Result of folding a log.

    Attributes:
        entities: Partition → entity → part → bytes.
        outputs: Id → event, including dead letters.
        turns: Number of folded turns.
        turn_keys: All valid turns that were not erased, without repeats.
        forgotten: Ids of outputs that erasures in the log removed.
        erased: Users and apps that were erased as a whole.
    """

    entities: dict[int, dict[str, dict[str, bytes]]]
    outputs: dict[str, OutputEvent]
    turns: int
    turn_keys: set[TurnKey]
    forgotten: frozenset[str] = frozenset()
    erased: frozenset[ErasureSubject] = frozenset()


class FoldRules(NamedTuple):
    """Rules of the fold of a partition from an offset on."""

    first_offset: int
    policy: Policy
    scorer: TurnScorer


RulesOf = Callable[[int], Sequence[FoldRules]]
"""Rules of a partition, in order of their offsets; the first also apply below their offset."""


class LogReplay(ABC, Generic[_Arrival]):
    """Folds the records of one partition after another. Repeated records change nothing.

    Args:
        policy: Policy of partitions without rules.
        rules_of: Rules of each partition; None: the policy.

    Attributes:
        folded: The role of the log.
        fed: Partition → offset after the last given record, including refused ones.
        limit: Maximum number of records of each partition that `take` folds.
        progress: Called with the number of folded records after each batch of `take`.
    """

    folded: Folded

    def __init__(self, policy: Policy, rules_of: RulesOf | None = None) -> None:
        self._policy = policy
        self._rules_of = rules_of and cache(rules_of)
        self._tables: dict[int, MemoryTable] = {}
        self._outputs: dict[str, OutputEvent] = {}
        self._turns = 0
        self._turns_of: defaultdict[SessionName, set[int]] = defaultdict(set)
        self._forgotten = Forgotten()
        self._floods: dict[int, FloodGauge] = {}
        self._taken: Counter[int] = Counter()
        self._waiting: list[ConsumerRecord] = []
        self.fed: dict[int, int] = {}
        self.limit: int | None = None
        self.progress: Callable[[int], None] = lambda _: None

    @abstractmethod
    def _decode(self, records: Sequence[ConsumerRecord], above: int, flood: FloodGauge) -> Decoded[_Arrival]:
        """Decode records as the role does."""

    @abstractmethod
    def _new_fold(self, entities: Entities) -> Callable[[Sequence[_Arrival]], Iterator[PartitionFolded]]:
        """The fold of a partition with its state."""

    def take(self, record: ConsumerRecord) -> None:
        """Add the next record, one partition after the other; `result` folds the last ones."""
        if self.limit is not None and self._taken[record.partition] >= self.limit:
            return
        waiting = self._waiting
        if waiting and (record.partition != waiting[0].partition or len(waiting) >= _BATCH_RECORDS):
            self._fold_waiting()
        self._taken[record.partition] += 1
        self.fed[record.partition] = record.offset + 1
        self._waiting.append(record)

    def _fold_waiting(self) -> None:
        if waiting := self._waiting:
            self._waiting = []
            self.fold(waiting[0].partition, waiting)
            self.progress(self._taken.total())

    def fold(self, partition: int, records: Sequence[ConsumerRecord]) -> None:
        """Fold records of a partition in log order; an empty list changes nothing."""
        if self._rules_of is None:
            self._fold(partition, records)
            return
        rules = self._rules_of(partition)
        later = rules[1:]
        for number, run in groupby(records, lambda record: sum(record.offset >= each.first_offset for each in later)):
            self._go_on_by(rules[number])
            self._fold(partition, list(run))

    def _go_on_by(self, rules: FoldRules) -> None:
        """Continue with other rules on the current state, as a restarted role does."""
        self._policy = rules.policy

    def _fold(self, partition: int, records: Sequence[ConsumerRecord]) -> None:
        if not records:
            return
        self.fed[partition] = records[-1].offset + 1
        table = self._tables.setdefault(partition, MemoryTable())
        flood = self._floods.setdefault(partition, FloodGauge(self._policy.intake))
        decoded = self._decode(records, folded_offset(table.entities), flood)
        self._keep(decoded.dead)
        if not decoded.arrivals:
            return
        for arrival in decoded.arrivals:
            self._note(arrival)
        try:
            self._take(table, self._new_fold(table.entities), decoded.arrivals)
        except Exception:  # noqa: BLE001 - as the role does it
            self._one_by_one(table, decoded.arrivals, {record.offset: record for record in records})

    def _note(self, arrival: _Arrival) -> None:
        event = arrival.event
        if isinstance(event, Turn | UserTurnAdded):
            self._turns_of[SessionName(event.app_id, event.session_id)].add(event.turn)
        elif isinstance(event, ERASURES):
            self._forgotten.note(event, arrival.position)
            if isinstance(event, SessionErased):
                erased = SessionName(event.app_id, event.session_id)
                for session in [each for each in self._turns_of if erased in {each, _unbound(each)}]:
                    del self._turns_of[session]

    def _one_by_one(
        self, table: MemoryTable, arrivals: Sequence[_Arrival], records: Mapping[int, ConsumerRecord]
    ) -> None:
        """Turn records that break the fold into dead letters, as the role does."""
        fold = self._new_fold(table.entities)
        for arrival in arrivals:
            try:
                self._take(table, fold, [arrival])
            except Exception as error:  # noqa: BLE001 - as the role does it
                self._keep([unfoldable(records[arrival.position.offset], error)])
                fold = self._new_fold(table.entities)

    def _take(
        self,
        table: MemoryTable,
        fold: Callable[[Sequence[_Arrival]], Iterator[PartitionFolded]],
        arrivals: Sequence[_Arrival],
    ) -> None:
        for folded in fold(arrivals):
            self._keep(folded.outputs)
            self._turns += folded.turns
            for entity, parts in folded.changed.items():
                table.put(entity, parts)

    def result(self) -> Replayed:
        """The result of all records so far; later folds change it."""
        self._fold_waiting()
        entities = {number: table.entities for number, table in self._tables.items()}
        forgotten = self._forgotten.among(self._outputs)
        numbered = {
            TurnKey(event.app_id, event.session_id, event.turn)
            for event in self._outputs.values()
            if isinstance(event, TurnNumbered) and event.id not in forgotten
        }
        return Replayed(
            entities,
            self._outputs,
            self._turns,
            numbered | {TurnKey(*session, turn) for session, turns in self._turns_of.items() for turn in turns},
            forgotten,
            frozenset(self._forgotten.subjects),
        )

    def _keep(self, events: Sequence[OutputEvent]) -> None:
        for event in events:
            self._outputs[event.id] = event


class SessionReplay(LogReplay[DecodedArrival]):
    """Replay of sessions from `turns.v1`."""

    folded = SESSIONS

    def __init__(self, policy: Policy, embedder: Embedder, scorer: TurnScorer, rules_of: RulesOf | None = None) -> None:
        super().__init__(policy, rules_of)
        self._embedder = embedder
        self._intake = Intake(policy, embedder, scorer)

    def _go_on_by(self, rules: FoldRules) -> None:
        super()._go_on_by(rules)
        self._intake = Intake(rules.policy, self._embedder, rules.scorer)

    def _decode(self, records: Sequence[ConsumerRecord], above: int, flood: FloodGauge) -> Decoded[DecodedArrival]:
        return self._intake.take(records, above=above, flood=flood)

    def _new_fold(self, entities: Entities) -> Callable[[Sequence[DecodedArrival]], Iterator[PartitionFolded]]:
        return PartitionFold(entities, self._policy).fold


class UsersReplay(LogReplay[Command]):
    """Replay of users from `commands.v1`."""

    folded = USERS

    def _decode(self, records: Sequence[ConsumerRecord], above: int, flood: FloodGauge) -> Decoded[Command]:
        return decode_commands(records, self._policy, above=above, flood=flood)

    def _new_fold(self, entities: Entities) -> Callable[[Sequence[Command]], Iterator[PartitionFolded]]:
        return MemoryPartitionFold(entities, self._policy).fold


async def feed_log(
    settings: Settings,
    replay: LogReplay[Any],
    *,
    before: Mapping[int, int] | None = None,
    limit: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Replayed:
    """Fold the records of the replay's log that it has not folded yet.

    Args:
        settings: Cluster and prefix.
        replay: The replay.
        before: Partition → offset: fold only records below it. None: all records.
        limit: As in `LogReplay`.
        progress: As in `LogReplay`.

    Raises:
        StoreUnavailable: Kafka does not answer.
        ConfigurationError: The topic does not exist.
    """
    replay.limit, replay.progress = limit, progress
    source = replay.folded.source.full_name(settings.topic_prefix)
    async for record in read_to_end(settings.kafka, source, first=dict(replay.fed), before=before):
        replay.take(record)
    return replay.result()
