"""Who scores turns hands over the vectors at hand, of the scored turns alone, and only to a scorer that reads them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from aiokafka.structs import ConsumerRecord
from qdrant_client import AsyncQdrantClient

from models.events import Role, Turn
from models.policy import Policy
from models.wire.codec import encode
from streams.index.server import ServerStore
from streams.inference.intake import Intake
from streams.ports import Vectors
from streams.roles.index import IndexRole
from streams.settings import load_settings
from tests.support.users_indexed import MatterEmbedder

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
EMBEDDER = MatterEmbedder()
SAID = [
    Turn(session_id="s", user_id="u", app_id="a", turn=number, role=role, content=content, timestamp=AT)
    for number, (role, content) in enumerate(
        [(Role.USER, "boats"), (Role.ASSISTANT, "They float."), (Role.USER, "bread"), (Role.TOOL, "42")]
    )
]
ASKED = [turn for turn in SAID if turn.role is Role.USER]


class Noting:
    """Notes what it is asked; a turn's risk is its number."""

    name = "noting"

    def __init__(self, reads: str) -> None:
        self.reads = reads
        self.asked: list[tuple[list[Turn], Vectors | None]] = []

    def score(self, turns: Sequence[Turn], vectors: Vectors | None = None) -> Sequence[float]:
        """Refuses an empty batch, as a model behind it may."""
        assert turns
        self.asked.append((list(turns), vectors))
        return [turn.turn / 10 for turn in turns]


RisksOf = Callable[[Noting, Path], Awaitable[list[float | None]]]


def given(scorer: Noting) -> Vectors | None:
    """The vectors of the only call, which must be about the users' turns."""
    ((turns, vectors),) = scorer.asked
    assert turns == ASKED
    return vectors


async def taken_in(scorer: Noting, _folder: Path) -> list[float | None]:
    """Risks by the intake of sessions."""
    records = [
        ConsumerRecord("t", 0, n, int(AT.timestamp() * 1000), 0, b"s", encode(turn), None, 1, 1, ())
        for n, turn in enumerate(SAID)
    ]
    return [arrival.risk for arrival in Intake(Policy(), EMBEDDER, scorer).take(records).arrivals]


async def indexed(scorer: Noting, folder: Path) -> list[float | None]:
    """Risks by the index role."""
    store = ServerStore(AsyncQdrantClient(":memory:"), embedder=EMBEDDER.name)
    role = IndexRole(load_settings(data_dir=folder), Policy(), EMBEDDER, scorer, store)
    return role._risks(SAID, EMBEDDER.embed([turn.content for turn in SAID]))


@pytest.mark.parametrize("risks_of", [taken_in, indexed])
@pytest.mark.parametrize("reads", [EMBEDDER.name, "another", ""])
async def test_vectors_go_to_the_scorer_that_reads_them(tmp_path: Path, risks_of: RisksOf, reads: str) -> None:
    """Another one makes its own: vectors of another model would be rubbish to it."""
    scorer = Noting(reads)

    assert await risks_of(scorer, tmp_path) == [0.0, None, 0.2, None]
    vectors = given(scorer)
    if reads != EMBEDDER.name:
        assert vectors is None
    else:
        assert vectors is not None
        assert np.array_equal(vectors, EMBEDDER.embed([turn.content for turn in ASKED]))
