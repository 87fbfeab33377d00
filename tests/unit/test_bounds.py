"""Nothing that is written can exceed what its topic takes; giants stay bounded, and are in nobody's way."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice

import numpy as np
import pytest

from models.events import (
    DeadLetter,
    ExtractedFact,
    FactCategory,
    FactsExtracted,
    InputEvent,
    Position,
    Role,
    SegmentSummarised,
    SessionEnded,
    Turn,
)
from models.partition.log_fold import PartitionFolded
from models.partition.sessions import DecodedArrival, PartitionFold
from models.policy import MemoryPolicy, PartitionPolicy, Policy, ProfilePolicy, RiskPolicy, TopicPolicy, WindowShape
from models.policy.app import AppPolicy
from models.policy.escalation import CombinationModel, EscalationPolicy
from models.risk.sequence import SIGNAL_NAMES
from models.session.bounds import STATE_WRITE_BYTES, fitting_dead_letter
from models.wire.codec import encode
from streams.state.changelog import keyed
from streams.state.memory import MemoryTable
from tests.support.limits import Partition, largest, too_large, written_bytes
from tests.support.session_driver import NOON, said
from tests.support.user_driver import fact

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
LONG = "\N{GRINNING FACE}" * 248
"""A prefix of ids: with eight more characters 256 of them, a thousand bytes."""
LETTER = "\U00020000"
"""A letter of four bytes."""


def largest_policy() -> Policy:
    """What a policy file could ask for at the most."""
    shape = WindowShape(length=timedelta(minutes=1), slide=timedelta(seconds=1), grace=timedelta(seconds=60))
    return Policy(
        memory=largest(MemoryPolicy, segment_turns=1),
        profile=largest(ProfilePolicy),
        topics=largest(TopicPolicy, similarity_threshold=0.5),
        risk=largest(RiskPolicy, risky_topics=tuple(f"{n:02d}" + LETTER * 62 for n in range(64))),
        escalation=largest(
            EscalationPolicy,
            ask_judge=True,
            model=CombinationModel(name=LETTER * 128, base=0, weights=dict.fromkeys(SIGNAL_NAMES, 9_999)),
        ),
        window=shape,
        partition=PartitionPolicy(app_window=shape, watermark_lateness=timedelta(seconds=119)),
        apps=largest(
            AppPolicy, ask=True, spaces=("app", "user"), content_chars=800, most_content_chars=800, most_pinned=48
        ),
    )


def turn(session: str, number: int, content: str, at: datetime = START, app: str = "a") -> Turn:
    """A user's turn."""
    return Turn(session_id=session, user_id="u", app_id=app, turn=number, role=Role.USER, content=content, timestamp=at)


def log(events: Iterator[InputEvent]) -> list[DecodedArrival]:
    """Arrivals with vectors, one after the other."""
    vector = np.linspace(-1, 1, 256, dtype=np.float32)
    return [DecodedArrival(e, Position("t" * 249, 0, n), e.timestamp, 0.9, vector) for n, e in enumerate(events)]


def folded(events: Iterator[InputEvent], policy: Policy) -> tuple[list[PartitionFolded], MemoryTable]:
    """Every result, kept as the role keeps it."""
    table = MemoryTable()
    results = []
    for result in PartitionFold(table.entities, policy).fold(log(events)):
        results.append(result)
        table.apply(keyed(result.changed), offset=result.offset, applied=0, tail=None, now_ms=0)
    return results, table


def wordy(sessions: int, turns: int) -> Iterator[InputEvent]:
    """Ids of a thousand bytes, every turn with topics of its own in letters of four bytes, and a long summary."""
    for number in range(turns):
        for n in range(sessions):
            session = f"{LONG}{n:08d}"
            words = " ".join(f"{LETTER * 26}{chr(0x4E00 + number * 40 + k)}" for k in range(40))
            said = f"I prefer {words}. " + f"Can you {words} now? " * 3
            yield turn(session, number, said, START + timedelta(seconds=number))
    for n in range(sessions):
        session = f"{LONG}{n:08d}"
        yield SegmentSummarised(
            session_id=session,
            timestamp=START,
            first_turn=0,
            last_turn=4,
            summary="\x01" * 100_000,
            summarised_by="\x01" * 1_000,
        )
        yield SessionEnded(session_id=session, timestamp=START, reason="\x01" * 100_000)


def test_windows_beyond_what_the_state_can_hold_are_refused() -> None:
    """Lateness keeps slides open: a day of it, by the minute, does not fit."""
    with pytest.raises(ValueError, match="1447 slides open, at most 240"):
        Policy(partition=PartitionPolicy(watermark_lateness=timedelta(days=1)))


@pytest.mark.parametrize("policy", [Policy(), largest_policy()], ids=["default", "largest"])
def test_real_sessions_stay_below_the_bounds(policy: Policy) -> None:
    """Of sessions that make everything long each kind of part is written, and no output is above what topics take."""
    results, table = folded(wordy(2, 60), policy)
    kept = {part.rstrip(".0123456789") for entity, parts in table.entities.items() if entity for part in parts}
    unjudged = set() if policy.escalation.model_in_force else {"e"}

    assert kept | {"b", "s", "v", "e"} == {"head", "b", "s", "v", "e", "t", "ti", "te", "tm", "ty", "tp", "tr", "n"}
    assert {part[0] for result in results for parts in result.changed.values() for part in parts} >= {
        *"hbsven"
    } - unjudged
    assert [output for result in results for output in result.outputs if too_large(output)] == []
    assert max(map(written_bytes, results)) <= STATE_WRITE_BYTES
    assert len(table.entities) == 3


def test_time_outs_of_large_sessions_are_spread_over_records() -> None:
    """With ids of a thousand bytes and full memories fewer than a hundred close at once; all of them close."""

    def events() -> Iterator[InputEvent]:
        for number in range(12):
            for n in range(60):
                yield turn(f"{LONG}{n:08d}", number, "Hello there?", START + timedelta(seconds=number))
        for n in range(10):
            yield turn("later", n, "Hello", START + timedelta(hours=1, seconds=n))

    results, table = folded(events(), Policy())

    assert max(map(written_bytes, results)) <= STATE_WRITE_BYTES
    closed = [parts for entity, parts in table.entities.items() if LONG in entity]
    assert {part for parts in closed for part in parts if part[0] not in "tn"} == {"head"}


def letter(value: bytes, key: bytes = b"k", headers: list[tuple[str, bytes | None]] | None = None) -> DeadLetter:
    """A dead letter of such a record."""
    return DeadLetter(
        id="i", topic="t", partition=0, offset=1, stage="decode", reason="not_json", detail="no JSON",
        key=key, value=value, headers=headers or [], appended_at=START,
    )  # fmt: skip


@pytest.mark.parametrize(
    "large",
    [
        letter(b"x" * 40_000_000),
        letter(b"{}", key=b"k" * 3_000_000),
        letter(b"{}", headers=[("h", b"x" * 1_000_000)] * 4),
    ],
    ids=["value", "key", "headers"],
)
def test_a_dead_letter_too_large_for_its_topic_says_so_and_goes_without(large: DeadLetter) -> None:
    """Place and reason are kept, the bytes stand in the source topic; otherwise the role would die on it for ever."""
    fitted = fitting_dead_letter(large)

    assert len(encode(fitted)) + len(fitted.key or b"") < 10_000
    assert (fitted.id, fitted.offset, fitted.reason, fitted.value) == ("i", 1, "not_json", None)
    assert "too large to keep here" in fitted.detail


WORDS = ("boat", "train", "bread", "garden", "piano", "river", "market", "winter", "letter", "window", "mirror", "salt")
VECTORS = np.random.default_rng(1).normal(size=(len(WORDS), 64)).astype(np.float32)


def giant(turns: int) -> Iterator[DecodedArrival]:
    """One session that goes on and on, by and by about everything."""
    for n, (kind, vector) in enumerate(islice(cycle(zip(WORDS, VECTORS, strict=True)), turns)):
        content = f"What of the {kind} number {n % 97}? I prefer the {kind} of day {n % 31}."
        event = said(n, content, session_id="giant", timestamp=NOON + timedelta(seconds=n))
        yield DecodedArrival(event, Position("t", 0, n), event.timestamp, 0.1, vector)


def growth(turns: tuple[int, int]) -> tuple[list[int], list[float]]:
    """Bytes of state at these turns, and bytes written per turn over the last tenth up to each."""
    table, sizes, written = MemoryTable(), list[int](), list[float]()
    fold, bytes_written = PartitionFold(table.entities, Policy()), list[int]()
    for n, arrival in enumerate(giant(turns[-1]), start=1):
        for result in fold.fold([arrival]):
            table.apply(keyed(result.changed), offset=result.offset, applied=0, tail=None, now_ms=0)
            bytes_written.append(written_bytes(result))
        if n in turns:
            sizes.append(table.size_bytes)
            latest = bytes_written[-n // 10 :]
            written.append(sum(latest) / len(latest))
    return sizes, written


@pytest.mark.behaviour("user-25")
@pytest.mark.parametrize("turns", [(1_000, 3_000), pytest.param((2_000, 20_000), marks=pytest.mark.slow)])
def test_a_turn_of_a_giant_session_costs_no_more_later(turns: tuple[int, int]) -> None:
    """Neither the state nor what a turn writes grows with the number of turns; numbers of turns get longer alone."""
    sizes, written = growth(turns)

    assert sizes[1] <= 1.1 * sizes[0]
    assert written[1] <= 1.1 * written[0]


@pytest.mark.parametrize("facts", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_user_of_very_many_facts_keeps_the_most_important(facts: int) -> None:
    """The state has the policy's number of them, each command writes one and takes one away; others keep theirs."""
    policy = Policy()
    partition = Partition(policy)

    def learnt(user: str, n: int) -> FactsExtracted:
        found: list[ExtractedFact] = [
            fact(f"key {n}", f"value {n}", 0.9, category=FactCategory.PREFERENCE, importance=0.3 + n / facts / 2)
        ]
        return FactsExtracted(
            app_id="a", user_id=user, timestamp=NOON + timedelta(seconds=n), extracted_by="llm", facts=found
        )

    for n in range(5):
        partition.take([learnt("small", n)])
    for n in range(facts):
        partition.take([learnt("giant", n)])
    kept = {
        user: sum(part.startswith("f:") for part in parts)
        for user in ("small", "giant")
        for entity, parts in partition.entities.items()
        if entity.endswith(user)
    }
    state = sum(len(value) for entity, parts in partition.entities.items() if entity for value in parts.values())

    assert kept == {"small": 5, "giant": policy.users.facts.most}
    assert state <= 100 * (policy.users.facts.most + 5)
    assert max(map(written_bytes, partition.results)) <= 500
    assert max(len(result.outputs) for result in partition.results) == 3  # stored, evicted, and how far the user is
