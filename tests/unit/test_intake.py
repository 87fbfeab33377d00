"""From records to arrivals: what is scored and what is embedded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord

from models.events import InputEvent, RestoredMessage, Role, TopicRestored, Turn
from models.policy import Policy
from models.wire.codec import encode
from streams.inference.intake import Intake, decode
from streams.inference.wordllama import WordLlamaEmbedder
from streams.ports import Vectors

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
EMBEDDER = WordLlamaEmbedder()


class LengthScorer:
    """Risk by the length of a turn; refuses an empty batch, as a model behind it may."""

    name = "length"
    reads = ""

    def score(self, turns: Sequence[Turn], vectors: Vectors | None = None) -> Sequence[float]:  # noqa: ARG002
        """One risk for each turn."""
        assert turns
        return [len(turn.content) / 100 for turn in turns]


def said(content: str, role: Role = Role.USER) -> Turn:
    """A turn."""
    return Turn(session_id="s", user_id="u", app_id="a", turn=1, role=role, content=content, timestamp=AT)


def restored(title: str, summary: str = "") -> TopicRestored:
    """A topic on its way back from the archive."""
    message = RestoredMessage(turn=0, role=Role.USER, content="x", timestamp=AT)
    return TopicRestored(session_id="s", timestamp=AT, topic_id="t", title=title, created_at=AT, importance=0.5,
                         access_count=1, summary=summary, messages=[message])  # fmt: skip


def taken(*events: InputEvent) -> list[Any]:
    """Risk and vector of each arrival; a vector as the text of which it is, for those in question."""
    records = [
        ConsumerRecord("t", 0, n, int((AT + timedelta(seconds=1)).timestamp() * 1000), 0, b"s", encode(event), None, 1,
                       1, ())
        for n, event in enumerate(events)
    ]  # fmt: skip
    arrivals = Intake(Policy(), EMBEDDER, LengthScorer()).take(records).arrivals
    assert [arrival.position.offset for arrival in arrivals] == list(range(len(events)))
    return [(arrival.risk, arrival.vector) for arrival in arrivals]


def vector(text: str) -> bytes:
    """What the embedder makes of a text."""
    found: bytes = EMBEDDER.embed([text])[0].tobytes()
    return found


def test_a_restored_topic_has_the_vector_of_its_title_and_summary() -> None:
    """Among turns, each arrival keeps its own; a topic has no risk."""
    found = taken(
        said("sails for a boat"),
        restored("bread", "how long it bakes"),
        said("It depends.", Role.ASSISTANT),
        said("tulips"),
        restored("visas"),
    )
    vectors = [None if each is None else each.tobytes() for _, each in found]

    assert [0.16, None, None, 0.06, None] == [risk for risk, _ in found]
    assert vectors == [vector("sails for a boat"), vector("bread\nhow long it bakes"), None, vector("tulips"),
                       vector("visas")]  # fmt: skip


@pytest.mark.parametrize("at_ms", [-1, -(2**63), 2**63 - 1])
def test_a_record_with_an_impossible_time_is_read(at_ms: int) -> None:
    """What a producer writes there stops no role; a turn from before 1970's log comes from the future."""
    record = ConsumerRecord("t", 0, 7, at_ms, 0, b"s", encode(said("hello")), None, 1, 1, ())

    decoded = decode([record], Policy().intake)

    assert [arrival.position.offset for arrival in decoded.arrivals] + [letter.offset for letter in decoded.dead] == [7]
