"""Intake of raw records: decode and check each, then score and embed the whole batch at once.

The live role, replay and tests take this same way in, so that all see the same risk and vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from math import isnan
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from aiokafka.structs import ConsumerRecord

from models.errors import InvalidRecord
from models.events import AnyTurn, DeadLetter, Position, Role, TopicRestored, Turn, TurnNumbered
from models.events.ids import event_id
from models.events.topics import COMMANDS, NUMBERED, TURNS, Topic
from models.partition.sessions import DecodedArrival
from models.policy import Policy, RiskPolicy
from models.risk.scorer import score_text
from models.session.bounds import fitting_dead_letter, thinned_dead_letter
from models.text.language import ENGLISH, UNDECIDED, language_of
from models.wire.arrival import Command
from models.wire.codec import decode_command, decode_input
from models.wire.envelope import SCHEMA_HEADER
from models.wire.flood import FloodGauge
from streams.kafka.records import appended_at, readable
from streams.masking.records import masker_of
from streams.observe.telemetry import metrics, stage
from streams.ports import Embedder, TurnScorer, Vectors

_Decoded = TypeVar("_Decoded")


class Decoded(NamedTuple, Generic[_Decoded]):
    """Decoded records of a batch, and its dead letters."""

    arrivals: list[_Decoded]
    dead: list[DeadLetter]


class Intake:
    """Decodes, scores and embeds."""

    def __init__(self, policy: Policy, embedder: Embedder, scorer: TurnScorer) -> None:
        self._policy = policy
        self._embedder = embedder
        self._scorer = scorer

    def take(
        self, records: Iterable[ConsumerRecord], *, above: int = -1, flood: FloodGauge | None = None
    ) -> Decoded[DecodedArrival]:
        """Arrivals and dead letters of the records whose offset is above the given one, each in log order."""
        return self.take_each({0: records}, above={0: above}, floods={} if flood is None else {0: flood})[0]

    def take_each(
        self,
        batches: Mapping[int, Iterable[ConsumerRecord]],
        *,
        above: Mapping[int, int],
        floods: Mapping[int, FloodGauge] = MappingProxyType({}),
    ) -> dict[int, Decoded[DecodedArrival]]:
        """Take several partitions like `take`, scored and embedded together."""
        decoded = {n: decode(each, self._policy, above=above[n], flood=floods.get(n)) for n, each in batches.items()}
        self._enrich([each.arrivals for each in decoded.values()])
        return decoded

    def _enrich(self, batches: Sequence[list[DecodedArrival]]) -> None:
        roles = self._policy.risk.scored_roles
        turns = [
            (arrivals, n, arrival.event)
            for arrivals in batches
            for n, arrival in enumerate(arrivals)
            if isinstance(arrival.event, AnyTurn) and arrival.event.role in roles
        ]
        restored = [
            (arrivals, n, topic_text(arrival.event.title, arrival.event.summary))
            for arrivals in batches
            for n, arrival in enumerate(arrivals)
            if isinstance(arrival.event, TopicRestored)
        ]
        if not turns and not restored:
            return
        texts = [(arrivals, n, turn.content) for arrivals, n, turn in turns] + restored
        with stage("embed"):
            vectors = self._embedder.embed([text for *_, text in texts])
        with stage("score"):
            said = [turn for *_, turn in turns]
            risks = score_turns(said, vectors[: len(said)], self._embedder, self._scorer)
            harms = self._harms(said, risks, vectors)
            languages = languages_of(said)
            readings = self._readings(said, languages, vectors)
        nothing = len(restored)
        added = zip([*risks, *[None] * nothing], vectors, [*languages, *[""] * nothing], strict=True)
        for at, ((arrivals, n, text), (risk, vector, language)) in enumerate(zip(texts, added, strict=True)):
            plain, known = arrivals[n], vector if text else None
            told = harms.get(at, ()), readings.get(at)
            arrivals[n] = DecodedArrival(plain.event, plain.position, plain.appended_at, risk, known, language, *told)

    def _harms(self, turns: Sequence[AnyTurn], risks: Sequence[float], vectors: Vectors) -> dict[int, tuple[int, ...]]:
        """Kinds of harm of the turns whose risk stands out, by their place; of the others nobody asks."""
        stands_out = self._policy.escalation.first_evidence_risk
        found = [n for n, risk in enumerate(risks) if isinstance(risk, int | float) and risk >= stands_out]
        if not found:
            return {}
        told = self._scorer.harms([turns[n] for n in found], self._at_hand(vectors, found))
        return dict(zip(found, told, strict=True))

    def _readings(self, turns: Sequence[AnyTurn], languages: Sequence[str], vectors: Vectors) -> dict[int, float]:
        """A second reader's, by place, of what users say in a language that is read."""
        reader, reads = self._scorer.reader, self._policy.risk.reads
        if reader is None:
            return {}
        asked = [n for n, turn in enumerate(turns) if turn.role is Role.USER and reads(languages[n] or ENGLISH)]
        said = [turns[n].content for n in asked]
        return dict(zip(asked, reader.readings(said, self._at_hand(vectors, asked)), strict=True))

    def _at_hand(self, vectors: Vectors, places: list[int]) -> Vectors | None:
        """Vectors of these turns where the scorer reads what this embedder makes."""
        return vectors[places] if self._scorer.reads == self._embedder.name else None


def score_turns(turns: Sequence[AnyTurn], vectors: Vectors, embedder: Embedder, scorer: TurnScorer) -> Sequence[float]:
    """Risk of each turn, 0-1; a scorer that reads this embedder's vectors (a row each) need not make them again.

    Where it gives no number (NaN) the rules' risk takes its place, and is counted: no silent zero.
    """
    if not turns:
        return []
    risks = list(scorer.score(turns, vectors if scorer.reads == embedder.name else None))
    for n, risk in enumerate(risks):
        if isinstance(risk, float) and isnan(risk):
            risks[n] = score_text(turns[n].content)
            metrics.counter("risks_not_a_number_total").inc()
    return risks


def weighed(  # noqa: PLR0917 - what is known of each turn, then by what it is weighed
    turns: Sequence[Turn],
    vectors: Vectors,
    languages: Sequence[str],
    policy: RiskPolicy,
    embedder: Embedder,
    scorer: TurnScorer,
) -> list[float | None]:
    """The scorer's risk of the roles it scores in the languages that it reads; a producer's risk is the turn's own."""
    risks: list[float | None] = [None] * len(turns)
    scored = [n for n, turn in enumerate(turns) if turn.role in policy.scored_roles]
    found = score_turns([turns[n] for n in scored], vectors[scored], embedder, scorer)
    for n, risk in zip(scored, found, strict=True):
        risks[n] = risk if policy.reads(languages[n] or ENGLISH) else None
    return risks


def languages_of(turns: Sequence[AnyTurn]) -> list[str]:
    """Language of each turn, empty where too little is said; those that are not English are counted."""
    languages = [language_of(turn.content) for turn in turns]
    for language in languages:
        if language not in {ENGLISH, UNDECIDED}:
            metrics.counter("turns_not_english_total", language=language).inc()
    return languages


def topic_text(title: str, summary: str | None) -> str:
    """Text by which a topic is embedded."""
    return f"{title}\n{summary}" if summary else title


def decode(
    records: Iterable[ConsumerRecord], policy: Policy, *, above: int = -1, flood: FloodGauge | None = None
) -> Decoded[DecodedArrival]:
    """Arrivals, neither scored nor embedded, and dead letters of the records above an offset, each in log order.

    Args:
        records: Of one partition.
        policy: What is refused, and whether arrivals are without secrets; letters have what came.
        above: Offset of the last record that is done with.
        flood: The partition's; none: every letter keeps its bytes.
    """

    def arrival(record: ConsumerRecord, received_at: datetime) -> DecodedArrival:
        value = masked(TURNS, record.value)
        event = decode_input(value, record.key, received_at, policy.intake)
        return DecodedArrival(event, _place(record), received_at)

    masked = _mask(policy)
    return _decode(records, arrival, above, flood)


def numbered_arrivals(records: Iterable[ConsumerRecord]) -> list[DecodedArrival]:
    """Turns that the fold numbered, each as if its record in `turns.v1` had had the number."""
    events = ((record, readable(NUMBERED, record)) for record in records)
    return [
        DecodedArrival(event.said, event.source, appended_at(record))
        for record, event in events
        if isinstance(event, TurnNumbered)
    ]


def decode_commands(
    records: Iterable[ConsumerRecord], policy: Policy, *, above: int = -1, flood: FloodGauge | None = None
) -> Decoded[Command]:
    """Commands and dead letters of the records of `commands.v1` above an offset, likewise."""

    def command(record: ConsumerRecord, received_at: datetime) -> Command:
        value = masked(COMMANDS, record.value)
        return Command(decode_command(value, record.key, received_at, policy.intake), _place(record), received_at)

    masked = _mask(policy)
    return _decode(records, command, above, flood, counts=_is_foreign)


def _mask(policy: Policy) -> Callable[[Topic, bytes | None], bytes | None]:
    """What takes secrets from a record's value."""
    mask = masker_of(policy.masking)
    return lambda topic, value: value if mask is None or value is None else mask.value(topic, value)


def _is_foreign(record: ConsumerRecord) -> bool:
    """Whether neither the API nor a role wrote a command: what they ask for is never part of a flood."""
    return all(name != SCHEMA_HEADER for name, _ in record.headers)


def _decode(
    records: Iterable[ConsumerRecord],
    read: Callable[[ConsumerRecord, datetime], _Decoded],
    above: int,
    flood: FloodGauge | None,
    counts: Callable[[ConsumerRecord], bool] = lambda _: True,
) -> Decoded[_Decoded]:
    """What the records hold; `counts` says of a refused one whether it can be part of a flood."""
    arrivals: list[_Decoded] = []
    dead: list[DeadLetter] = []
    # What is done with still says whether what follows is a flood.
    done_with = above if flood is None else above - flood.reach
    with stage("decode"):
        for record in records:
            if record.offset <= done_with:
                continue
            try:
                arrival = read(record, appended_at(record))
            except InvalidRecord as reason:
                is_thinned = flood is not None and counts(record) and flood.refuse(record.offset)
                if record.offset > above:
                    letter = dead_letter(record, "decode", reason)
                    dead.append(thinned_dead_letter(letter) if is_thinned else letter)
            else:
                if record.offset > above:
                    arrivals.append(arrival)
    return Decoded(arrivals, dead)


def _place(record: ConsumerRecord) -> Position:
    return Position(record.topic, record.partition, record.offset)


def dead_letter(record: ConsumerRecord, stage_name: str, reason: InvalidRecord) -> DeadLetter:
    """The dead letter of a record: original bytes if its topic can take them, reason and place."""
    position = _place(record)
    letter = DeadLetter(
        id=event_id("dead_letter", record.topic, position),
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        stage=stage_name,
        reason=reason.reason,
        detail=reason.detail,
        key=record.key,
        value=record.value,
        headers=list(record.headers),
        appended_at=appended_at(record),
    )
    return fitting_dead_letter(letter)


def unfoldable(record: ConsumerRecord, error: Exception) -> DeadLetter:
    """The dead letter of a record that breaks the fold."""
    reason = InvalidRecord("fold_failed", f"{type(error).__name__} in the fold; replay after an upgrade")
    return dead_letter(record, "fold", reason)
