"""Comparison of what the roles left behind with the oracles' folds of the same logs (`streams.oracle.replay`). Pure.

| compared | rule |
|---|---|
| state | every part byte for byte, packed topics by the messages in them |
| outputs | by id: none missing, none false, payload as the oracle's; a repeat with the same id and payload is counted |

`streams.oracle.followers` has the invariants of users' memories, and compares archive and index.

What topics' packed messages take, in bytes, may differ: another release of libzstd or zlib packs them otherwise.

Of events of which only the last on a key counts (`Emits.last_counts`) a role need not write the others.

Where the broker removed records of a compacted topic, only the last event of each key must be there, unless an erasure
took it; where retention or an erasure removed the oldest of another topic, none must.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum

from msgspec import MsgspecError, Struct, field
from msgspec.json import Decoder
from msgspec.structs import replace

from models.entities import REGISTRY, TOPIC_OF
from models.events import OutputEvent, TopicChanged
from models.events.topics import Cleanup
from models.partition.log_fold import PARTITION_ENTITY
from models.session.outputs import forms_of
from models.session.state import Open, SessionState
from models.session.topics.store import without_packing
from models.wire.codec import encode
from models.wire.envelope import key_of, superseded, unread
from streams.oracle.replay import OUTPUT_TOPICS, Entities, Replayed

MAX_EXAMPLES = 20
"""Differences listed for each place and kind; counts are always exact."""
STATE, USERS_STATE = "state", "users' state"
_decode_topic = Decoder(TopicChanged).decode
_EXPIRING = frozenset(topic.name for topic in REGISTRY.topics if topic.cleanup is Cleanup.DELETE)


class DifferenceKind(StrEnum):
    """How something differs from the oracle."""

    MISSING = "missing"
    FALSE = "false"
    CHANGED = "changed"
    DOUBLED = "doubled"


class Difference(Struct, frozen=True):
    """One thing that is not as the oracle has it; `what` names it, without any turn's text."""

    where: str
    kind: DifferenceKind
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

    def count(self, where: str, *kinds: DifferenceKind) -> int:
        """Differences of these kinds at one place."""
        return sum(self.counts.get(f"{where} {kind}", 0) for kind in kinds)

    def add(self, where: str, kind: DifferenceKind, what: Iterable[str]) -> None:
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
        self, where: str, expected: AbstractSet[str], found: AbstractSet[str], may_miss: AbstractSet[str] = frozenset()
    ) -> None:
        """Compare names; those of `may_miss` need not be there."""
        self.checked[where] = len(expected)
        self.add(where, DifferenceKind.MISSING, expected - found - may_miss)
        self.add(where, DifferenceKind.FALSE, found - expected)


class TopicOutputs(Struct):
    """What stands on one output topic.

    Attributes:
        values: Id → payload of each record, in log order.
        written_ms: Id → time of its first record, ms since 1970.
        has_holes: The broker's compaction, or its retention, has removed records.
        later_keys: Keys of records that came of input beyond what is compared: compaction may have taken earlier ones.
    """

    values: dict[str, list[bytes]] = field(default_factory=dict)
    written_ms: dict[str, int] = field(default_factory=dict)
    has_holes: bool = False
    later_keys: set[bytes | None] = field(default_factory=set)


def compare_state(found: Mapping[int, Entities], oracle: Replayed, *, where: str = STATE) -> Comparison:
    """The changelog's parts against the oracle's."""
    result = Comparison()
    left, right = _parts(oracle.entities), _parts(found)
    result.ids(where, left.keys(), right.keys())
    differing = (name for name in left.keys() & right.keys() if left[name] != right[name])
    changed = (name for name in differing if _unpacked(name, left[name]) != _unpacked(name, right[name]))
    result.add(where, DifferenceKind.CHANGED, changed)
    return result


def _parts(partitions: Mapping[int, Entities]) -> dict[str, bytes]:
    return {
        f"partition {number}, {entity or 'the partition itself'}, {part}": value
        for number, entities in partitions.items()
        for entity, parts in entities.items()
        for part, value in parts.items()
    }


def _unpacked(name: str, value: bytes) -> bytes:
    return without_packing(name.rpartition(", ")[2], value)


def compare_outputs(found: Mapping[str, TopicOutputs], *oracles: Replayed) -> Comparison:
    """Every output topic (`found`, by its name without the prefix) against the oracles' events."""
    result = Comparison()
    forgotten = frozenset[str]().union(*(oracle.forgotten for oracle in oracles))
    for name, expected in by_topic(*oracles).items():
        on_topic = found.get(name, TopicOutputs())
        replaced = {i for i, event in expected.items() if key_of(event) in on_topic.later_keys}
        may_miss: AbstractSet[str] = unread(expected.values())
        may_miss |= {i for i in replaced if REGISTRY.emits[type(expected[i])].last_counts}
        if on_topic.has_holes and name in _EXPIRING:
            may_miss = expected.keys()
            result.not_checked[name] = "retention has removed its oldest records: only what is left was compared"
        elif on_topic.has_holes:
            may_miss = superseded(expected.values()) | forgotten | replaced
        result.ids(name, expected.keys(), on_topic.values.keys(), may_miss=may_miss)
        payloads = {i: {*map(encode, forms_of(event))} for i, event in expected.items() if i in on_topic.values}
        changed = (i for i, payload in payloads.items() if not payload.issuperset(on_topic.values[i]))
        result.add(name, DifferenceKind.CHANGED, (i for i in changed if not _says(expected[i], on_topic.values[i])))
        result.repeats += sum(len(values) - 1 for values in on_topic.values.values())
    return result


def _says(event: OutputEvent, values: Iterable[bytes]) -> bool:
    """Whether records of a changed topic say the same as the event, but for the bytes that packed messages take."""
    if not isinstance(event, TopicChanged):
        return False
    try:
        return {_without_sizes(event)} == {_without_sizes(_decode_topic(value)) for value in values}
    except MsgspecError:
        return False


def _without_sizes(event: TopicChanged) -> bytes:
    made = event.compaction and replace(event.compaction, bytes_after=0, ratio=0.0)
    return encode(replace(event, packed_bytes=0, compaction=made))


def by_topic(*oracles: Replayed) -> dict[str, dict[str, OutputEvent]]:
    """Topic, without the prefix → id → event, of every output topic."""
    sorted_out: dict[str, dict[str, OutputEvent]] = {topic.name: {} for topic in OUTPUT_TOPICS}
    for oracle in oracles:
        for event in oracle.outputs.values():
            if (topic := TOPIC_OF[type(event)].name) in sorted_out:  # what goes back to `turns.v1` is an input there
                sorted_out[topic][event.id] = event
    return sorted_out


def turn_counts(partitions: Mapping[int, Entities]) -> dict[str, int]:
    """Turns counted by each open session, by its key, as its state has it."""
    return {
        key: head.turn_count
        for entities in partitions.values()
        for key, parts in entities.items()
        if key != PARTITION_ENTITY and isinstance(head := SessionState.load(parts).head, Open)
    }
