"""From records to arrivals: what is scored, by which vectors, and what is embedded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from aiokafka.structs import ConsumerRecord
from qdrant_client import AsyncQdrantClient

from models.events import InputEvent, RestoredMessage, Role, TopicRestored, Turn
from models.policy import Policy
from models.wire.codec import encode
from streams.index.server import ServerStore
from streams.inference.intake import Intake, decode
from streams.ports import TurnScorer, Vectors
from streams.roles.index import IndexRole
from streams.settings import load_settings
from tests.support.blank_events import blank
from tests.support.session_driver import NOON, said
from tests.support.users_indexed import MatterEmbedder

EMBEDDER = MatterEmbedder()
SAID = [said(0, "boats"), said(1, "They float.", role=Role.ASSISTANT), said(2, "bread"), said(3, "42", role=Role.TOOL)]
ASKED = [turn for turn in SAID if turn.role is Role.USER]


class Noting:
    """Notes what it is asked; a turn's risk is its number."""

    name = "noting"

    def __init__(self, reads: str = "") -> None:
        self.reads = reads
        self.asked: list[tuple[list[Turn], Vectors | None]] = []

    def score(self, turns: Sequence[Turn], vectors: Vectors | None = None) -> Sequence[float]:
        """Refuses an empty batch, as a model behind it may."""
        assert turns
        self.asked.append((list(turns), vectors))
        return [turn.turn / 10 for turn in turns]


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


async def taken_in(scorer: Noting, _folder: Path) -> list[float | None]:
    """Risks by the intake of sessions."""
    return [risk for risk, _ in taken(scorer, *SAID)]


async def indexed(scorer: Noting, folder: Path) -> list[float | None]:
    """Risks by the index role."""
    store = ServerStore(AsyncQdrantClient(":memory:"), embedder=EMBEDDER.name)
    role = IndexRole(load_settings(data_dir=folder), Policy(), EMBEDDER, scorer, store)
    return role._risks(SAID, EMBEDDER.embed([turn.content for turn in SAID]))


@pytest.mark.parametrize("risks_of", [taken_in, indexed])
@pytest.mark.parametrize("reads", [EMBEDDER.name, "another", ""])
async def test_vectors_go_to_the_scorer_that_reads_them(
    tmp_path: Path, risks_of: Callable[[Noting, Path], Awaitable[list[float | None]]], reads: str
) -> None:
    """Of users' turns alone; another one makes its own: vectors of another model would be rubbish to it."""
    scorer = Noting(reads)

    assert await risks_of(scorer, tmp_path) == [0.0, None, 0.2, None]
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
