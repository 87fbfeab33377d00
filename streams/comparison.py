"""What the roles left behind, held against the oracle's fold of the same log (`streams.replay`). Pure.

| compared | rule |
|---|---|
| state | every part byte for byte |
| outputs | by id: none missing, none false, payload as the oracle's; a repeat with the same id and payload is counted |
| archive | every turn and every output id once, as many refused records as the oracle refuses |
| index | by session and number: each turn that the policy keeps, none of any other, and no more points than turns |

Of a compacted topic from which the broker has removed records, only the last event of each key must be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum

from msgspec import Struct, field

from models.codec import encode
from models.events import DeadLetter, Output, OutputEvent
from models.partition import PARTITION_ENTITY
from models.session_state import Open, SessionState
from models.topics import TOPIC_OF, TOPICS, TURNS
from streams.replay import Replayed

MAX_EXAMPLES = 20
"""Differences listed for each place and kind; counts are always exact."""
STATE, ARCHIVE_TURNS, ARCHIVE_REFUSED, INDEX = "state", "archive turns", "archive refused", "index"
Entities = Mapping[str, Mapping[str, bytes]]
OUTPUT_TOPICS = tuple(topic for topic in TOPICS if topic.public and topic is not TURNS)


class Kind(StrEnum):
    """How something differs from the oracle."""

    MISSING = "missing"
    FALSE = "false"
    CHANGED = "changed"
    DOUBLED = "doubled"


class Difference(Struct, frozen=True):
    """One thing that is not as the oracle has it; `what` names it, without any turn's text."""

    where: str
    kind: Kind
    what: str


class Comparison(Struct, kw_only=True):
    """The findings.

    Attributes:
        counts: `<where> <kind>` → number of differences.
        examples: The first `MAX_EXAMPLES` of each.
        checked: Where → how many things the oracle has there.
        not_checked: Where → why it was not compared.
        repeats: Output records that came again with the same id and payload; allowed.
    """

    counts: dict[str, int] = field(default_factory=dict)
    examples: list[Difference] = field(default_factory=list)
    checked: dict[str, int] = field(default_factory=dict)
    not_checked: dict[str, str] = field(default_factory=dict)
    repeats: int = 0

    @property
    def differences(self) -> int:
        """How many there are."""
        return sum(self.counts.values())

    def count(self, where: str, *kinds: Kind) -> int:
        """Differences of these kinds at one place."""
        return sum(self.counts.get(f"{where} {kind}", 0) for kind in kinds)

    def add(self, where: str, kind: Kind, what: Iterable[str]) -> None:
        """Note differences."""
        found = sorted(what)
        if found:
            name = f"{where} {kind}"
            listed = self.counts.get(name, 0)
            self.counts[name] = listed + len(found)
            self.examples += [Difference(where, kind, each) for each in found[: max(0, MAX_EXAMPLES - listed)]]

    def include(self, other: Comparison) -> None:
        """Take over what another comparison found at other places."""
        self.counts |= other.counts
        self.examples += other.examples
        self.checked |= other.checked
        self.not_checked |= other.not_checked
        self.repeats += other.repeats

    def ids(
        self,
        where: str,
        expected: AbstractSet[str],
        found: AbstractSet[str],
        *,
        may_miss: AbstractSet[str] = frozenset(),
    ) -> None:
        """Compare names; those of `may_miss` need not be there."""
        self.checked[where] = len(expected)
        self.add(where, Kind.MISSING, expected - found - may_miss)
        self.add(where, Kind.FALSE, found - expected)


class TopicOutputs(Struct):
    """What stands on one output topic.

    Attributes:
        values: Id → payload of each record, in log order.
        written_ms: Id → time of its first record, ms since 1970.
        has_holes: The broker's compaction has removed records.
    """

    values: dict[str, list[bytes]] = field(default_factory=dict)
    written_ms: dict[str, int] = field(default_factory=dict)
    has_holes: bool = False


class Archived(Struct, kw_only=True):
    """What the archive holds.

    Attributes:
        turns: Session and number of each row of the view `turns`.
        doubled_rows: Rows of `raw.turns` beyond one for each record.
        ids: Topic → ids of its events.
        refused: Records of the turns topic without a row because they cannot be used.
        compacted: Topics from which records were gone when they were read.
    """

    turns: list[tuple[str, int]]
    doubled_rows: int
    ids: dict[str, set[str]]
    refused: int
    compacted: set[str]


class Indexed(Struct, kw_only=True):
    """What the index holds.

    Attributes:
        turns: Session and number of the turns of every session that the oracle knows, from their payloads.
        at_most: How many were asked for of each session: the newest ones.
        points: All points, of unknown sessions too.
    """

    turns: list[tuple[str, int]]
    at_most: int
    points: int


def compare_state(found: Mapping[int, Entities], oracle: Replayed) -> Comparison:
    """The changelog's parts against the oracle's, byte for byte."""
    result = Comparison()
    left, right = _parts(oracle.entities), _parts(found)
    result.ids(STATE, left.keys(), right.keys())
    result.add(STATE, Kind.CHANGED, (name for name in left.keys() & right.keys() if left[name] != right[name]))
    return result


def _parts(partitions: Mapping[int, Entities]) -> dict[str, bytes]:
    return {
        f"partition {number}, {entity or 'the partition itself'}, {part}": value
        for number, entities in partitions.items()
        for entity, parts in entities.items()
        for part, value in parts.items()
    }


def compare_outputs(found: Mapping[str, TopicOutputs], oracle: Replayed) -> Comparison:
    """Every output topic against the oracle's events.

    Args:
        found: By topic name, without the prefix.
        oracle: What should be there.
    """
    result = Comparison()
    for name, expected in _by_topic(oracle.outputs.values()).items():
        on_topic = found.get(name, TopicOutputs())
        may_miss = _superseded(expected.values()) if on_topic.has_holes else frozenset()
        result.ids(name, expected.keys(), on_topic.values.keys(), may_miss=may_miss)
        payloads = {i: encode(event) for i, event in expected.items() if i in on_topic.values}
        result.add(name, Kind.CHANGED, (i for i, p in payloads.items() if any(v != p for v in on_topic.values[i])))
        result.repeats += sum(len(values) - 1 for values in on_topic.values.values())
    return result


def _by_topic(events: Iterable[OutputEvent]) -> dict[str, dict[str, OutputEvent]]:
    sorted_out: dict[str, dict[str, OutputEvent]] = {topic.name: {} for topic in OUTPUT_TOPICS}
    for event in events:
        sorted_out[TOPIC_OF[type(event)].name][event.id] = event
    return sorted_out


def _superseded(events: Iterable[OutputEvent]) -> AbstractSet[str]:
    """Ids of all events but the last of each session; events come in the order of their causes."""
    last: dict[str, str] = {}
    ids = set()
    for event in events:
        ids.add(event.id)
        if isinstance(event, Output):
            last[event.session_id] = event.id
    return ids - set(last.values())


def compare_archive(found: Archived, oracle: Replayed) -> Comparison:
    """The archive's turns, output ids and refused records against the oracle's."""
    result = Comparison()
    expected = {_turn_name(key) for key in oracle.turn_keys}
    archived = [_turn_name(key) for key in found.turns]
    result.ids(ARCHIVE_TURNS, expected, set(archived))
    doubled = max(len(archived) - len(set(archived)), found.doubled_rows)
    result.add(ARCHIVE_TURNS, Kind.DOUBLED, [f"row {n + 1} too many" for n in range(doubled)])
    for name, events in _by_topic(oracle.outputs.values()).items():
        may_miss = _superseded(events.values()) if name in found.compacted else frozenset()
        result.ids(f"archive {name}", events.keys(), found.ids.get(name, set()), may_miss=may_miss)
    refused = sum(isinstance(event, DeadLetter) and event.stage == "decode" for event in oracle.outputs.values())
    _numbers(result, ARCHIVE_REFUSED, refused, found.refused)
    return result


def compare_index(found: Indexed, oracle: Replayed, *, keep_turns: int) -> Comparison:
    """The index's turns, and its size, against one point for each turn.

    Turns below a session's newest `keep_turns` numbers are deleted with the next batch of the session that brings a
    turn above them (`streams.vectors.session_memory`): until then they may stand.
    """
    by_session: dict[str, list[int]] = {}
    for session_id, turn in oracle.turn_keys:
        by_session.setdefault(session_id, []).append(turn)
    expected, may_miss = set(), set()
    for session_id, turns in by_session.items():
        newest = sorted(turns, reverse=True)[: found.at_most]
        expected |= {_turn_name((session_id, turn)) for turn in newest}
        may_miss |= {_turn_name((session_id, turn)) for turn in newest if turn <= newest[0] - keep_turns}
    listed = {_turn_name(key) for key in found.turns}
    known = {_turn_name(key) for key in oracle.turn_keys}
    result = Comparison(checked={INDEX: len(expected)})
    result.add(INDEX, Kind.MISSING, expected - listed - may_miss)
    result.add(INDEX, Kind.FALSE, listed - known)
    unlisted = found.points - len(oracle.turn_keys) - len(listed - known)
    result.add(INDEX, Kind.FALSE, [f"point {n + 1} of no known session" for n in range(unlisted)])
    return result


def _numbers(result: Comparison, where: str, expected: int, found: int) -> None:
    result.checked[where] = expected
    result.add(where, Kind.MISSING, [f"{n + 1} of {expected}" for n in range(found, expected)])
    result.add(where, Kind.FALSE, [f"{n + 1}, beyond {expected}" for n in range(expected, found)])


def _turn_name(key: tuple[str, int]) -> str:
    session_id, turn = key
    return f"{session_id}, turn {turn}"


def turn_counts(partitions: Mapping[int, Entities]) -> dict[str, int]:
    """Turns counted by each open session, as its state has it."""
    heads = {
        session_id: SessionState.load(parts).head
        for entities in partitions.values()
        for session_id, parts in entities.items()
        if session_id != PARTITION_ENTITY
    }
    return {session_id: head.turn_count for session_id, head in heads.items() if isinstance(head, Open)}
