"""From records to arrivals: what is scored and embedded; floods of refused records."""

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from aiokafka.structs import ConsumerRecord

from models.events import AnyTurn, InputEvent, MemoryDeleted, RestoredMessage, Role, TopicRestored
from models.policy import IntakePolicy, Policy
from models.text.language import ENGLISH
from models.wire.codec import encode
from models.wire.envelope import Headers, headers_for
from models.wire.flood import FloodGauge
from streams.inference.intake import Intake, decode, decode_commands, weighed
from streams.ports import TurnScorer, Vectors
from tests.support.blank_events import blank
from tests.support.session_driver import NOON, said
from tests.support.users_indexed import MatterEmbedder

EMBEDDER = MatterEmbedder()
SAID = [said(0, "boats"), said(1, "They float.", role=Role.ASSISTANT), said(2, "bread"), said(3, "42", role=Role.TOOL)]
ASKED = [turn for turn in SAID if turn.role is Role.USER]


class Noting(TurnScorer):
    """Notes what it is asked; a turn's risk is its number."""

    name = "noting"

    def __init__(self, reads: str = "") -> None:
        self.reads = reads
        self.asked: list[tuple[list[AnyTurn], Vectors | None]] = []

    def score(self, turns: Sequence[AnyTurn], vectors: Vectors | None = None) -> Sequence[float]:
        """Refuses an empty batch, as a model behind it may."""
        assert turns
        self.asked.append((list(turns), vectors))
        return [getattr(turn, "turn", 0) / 10 for turn in turns]


def record(offset: int, event: InputEvent, at_ms: int | None = None) -> ConsumerRecord:
    """Written an hour after noon, unless told otherwise."""
    written_ms = int((NOON + timedelta(hours=1)).timestamp() * 1000) if at_ms is None else at_ms
    return ConsumerRecord("t", 0, offset, written_ms, 0, b"s", encode(event), None, 1, 1, ())


def taken(scorer: TurnScorer, *events: InputEvent) -> list[tuple[float | None, bytes | None]]:
    """Risk and vector of each arrival."""
    arrivals = Intake(Policy(), EMBEDDER, scorer).take([record(n, event) for n, event in enumerate(events)]).arrivals
    assert [arrival.position.offset for arrival in arrivals] == list(range(len(events)))
    return [(each.risk, None if each.vector is None else each.vector.tobytes()) for each in arrivals]


def restored(title: str, summary: str = "") -> TopicRestored:
    """A topic on its way back from the archive."""
    message = RestoredMessage(turn=0, role=Role.USER, content="x", timestamp=NOON)
    told = {"session_id": "s", "timestamp": NOON, "topic_id": "t", "created_at": NOON, "messages": [message]}
    return blank(TopicRestored, **told, title=title, summary=summary)


def vector(text: str) -> bytes:
    """What the embedder makes of a text."""
    found: bytes = EMBEDDER.embed([text])[0].tobytes()
    return found


def test_a_restored_topic_has_the_vector_of_its_title_and_summary() -> None:
    """Among turns, each arrival keeps its own; a topic has no risk."""
    assert taken(Noting(), SAID[0], restored("bread", "how boats float"), SAID[1], SAID[2], restored("boats")) == [
        (0.0, vector("boats")),
        (None, vector("bread\nhow boats float")),
        (None, None),
        (0.2, vector("bread")),
        (None, vector("boats")),
    ]


def taken_in(scorer: Noting) -> list[float | None]:
    """Risks by the intake of sessions."""
    return [risk for risk, _ in taken(scorer, *SAID)]


def indexed(scorer: Noting) -> list[float | None]:
    """Risks by the index role."""
    vectors = EMBEDDER.embed([turn.content for turn in SAID])
    return weighed(SAID, vectors, [ENGLISH] * len(SAID), Policy().risk, EMBEDDER, scorer)


@pytest.mark.parametrize("risks_of", [taken_in, indexed])
@pytest.mark.parametrize("reads", [EMBEDDER.name, "another", ""])
def test_vectors_go_to_the_scorer_that_reads_them(risks_of: Callable[[Noting], list[float | None]], reads: str) -> None:
    """Of users' turns alone; another one makes its own: vectors of another model would be rubbish to it."""
    scorer = Noting(reads)

    assert risks_of(scorer) == [0.0, None, 0.2, None]
    ((turns, vectors),) = scorer.asked
    assert turns == ASKED
    if reads != EMBEDDER.name:
        assert vectors is None
    else:
        assert vectors is not None
        assert np.array_equal(vectors, EMBEDDER.embed([turn.content for turn in ASKED]))


@pytest.mark.parametrize("at_ms", [-1, -(2**63), 2**63 - 1])
def test_a_record_with_an_impossible_time_is_read(at_ms: int) -> None:
    """What a producer writes there stops no role; a turn from before 1970's log comes from the future."""
    decoded = decode([record(7, SAID[0], at_ms)], Policy())

    assert [arrival.position.offset for arrival in decoded.arrivals] + [letter.offset for letter in decoded.dead] == [7]


LIMITS = IntakePolicy(dead_letter_consecutive=10, dead_letter_window=20, dead_letter_ratio=0.8)
RULES = Policy(intake=LIMITS)


def refused_record(
    offset: int, value: bytes, *, topic: str = "t.turns.v1", headers: Headers | None = None
) -> ConsumerRecord:
    """A record of the first partition."""
    return ConsumerRecord(topic, 0, offset, 1_767_600_000_000, 1, b"k", value, None, 1, len(value), headers or ())


@pytest.mark.parametrize(
    ("refused", "thinned"),
    [
        (range(10), []),
        (range(15), range(10, 15)),
        (range(9), []),
        ([*range(9), *range(10, 19)], range(17, 19)),  # 16 of 20, though not in a row
        ([*range(12), 40, 41], range(10, 12)),
        (range(30), [n for n in range(10, 30) if n != 20]),  # a sample keeps its bytes
        (range(0, 200, 2), []),
    ],
)
def test_the_limits(refused: range | list[int], thinned: range | list[int]) -> None:
    """Ten in a row, or sixteen of the last twenty offsets."""
    gauge = FloodGauge(LIMITS)

    assert [offset for offset in refused if gauge.refuse(offset)] == list(thinned)


@pytest.mark.parametrize("seed", range(20))
def test_letters_are_the_same_wherever_a_worker_takes_over(seed: int) -> None:
    """Whole, cut into batches, and from the middle of the log after looking back."""
    rng = random.Random(seed)
    log = [
        refused_record(n, b"junk" if rng.random() < 0.85 else b'{"session_id":"k","user_id":"u","turn":1}')
        for n in range(200)
        if rng.random() < 0.95
    ]
    whole = decode(log, RULES, flood=FloodGauge(LIMITS)).dead
    cut, batches, gauge = rng.randrange(1, len(log)), [], FloodGauge(LIMITS)
    start = log[cut].offset
    decode([each for each in log[:cut] if each.offset >= start - gauge.reach], RULES, flood=gauge)
    rest = log[cut:]
    while rest:
        size = rng.randrange(1, 30)
        batches += decode(rest[:size], RULES, flood=gauge).dead
        rest = rest[size:]

    assert batches == [letter for letter in whole if letter.offset >= start]
    assert any(letter.value is None for letter in whole)


def test_what_is_done_with_counts() -> None:
    """State may be ahead of the committed offset: those letters are written already, and part of the flood."""
    log = [refused_record(n, b"junk") for n in range(15)]

    letters = decode(log, RULES, above=11, flood=FloodGauge(LIMITS)).dead

    assert [(letter.offset, letter.value) for letter in letters] == [(12, None), (13, None), (14, None)]


def test_commands_of_the_api_never_count() -> None:
    """They bear their schema; what they ask for may be refused, and keeps its bytes."""
    command = MemoryDeleted(app_id="a\x01", memory_id=1, timestamp=datetime(2026, 1, 5, tzinfo=UTC))
    for headers, is_flood in ((headers_for(command), False), ([], True)):
        log = [refused_record(n, encode(command), topic="t.commands.v1", headers=headers) for n in range(15)]
        letters = decode_commands(log, RULES, flood=FloodGauge(LIMITS)).dead

        assert len(letters) == 15
        assert any(letter.value is None for letter in letters) is is_flood
