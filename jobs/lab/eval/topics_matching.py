"""Assignment of a session's messages to topics, by the project's own fold and by simulations, and how right it is.

What is counted are pairs of messages: two belong together if they come from one dialogue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from datetime import timedelta
from math import comb
from typing import Final, Literal

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from jobs.lab.eval.scores import ScoreFigures, figures_of
from jobs.lab.eval.topics_dialogues import BEGINS, Mixed, MixedSession
from models.events import Position, TopicChanged
from models.policy import Policy
from models.session.fold import SessionState, fold
from models.session.topics.matching import MEMORY, topic_vector
from models.wire.arrival import SessionInput
from streams.ports import Vectors

SESSION_ID: Final = "eval"
_BETWEEN_TURNS = timedelta(seconds=30)
_COMES_TO = frozenset({"started", "returned", "unpacked"})
"""Causes after which a topic is the active one."""

Embedding = Literal["running mean", "first message"]


class PairPoint(Struct, frozen=True):
    """What a threshold alone does to pairs of messages.

    Attributes:
        threshold: Cosine above which two messages are joined.
        true_join_rate: Share of the pairs of one dialogue that are joined.
        false_join_rate: Share of the pairs of two dialogues that are.
        youden: The first less the second: 1 parts them cleanly, 0 is no better than chance.
    """

    threshold: float
    true_join_rate: float
    false_join_rate: float
    youden: float


def count_pairs(sessions: Iterable[tuple[Sequence[Hashable], Sequence[Hashable]]]) -> ScoreFigures:
    """Pairs in one topic against pairs of one dialogue; of each session the topics and dialogues of its messages.

    >>> count_pairs([(["a", "a", "b"], [1, 1, 1])])
    ScoreFigures(precision=1.0, recall=0.3333333333333333, f1=0.5, gold=3, found=1)
    """
    counts = [(_pairs(zip(*each, strict=True)), _pairs(each[1]), _pairs(each[0])) for each in sessions]
    right, belonging, together = (sum(each[n] for each in counts) for n in range(3))
    return figures_of(right, gold=belonging, found=together)


def _pairs(labels: Iterable[Hashable]) -> int:
    return sum(comb(count, 2) for count in Counter(labels).values())


def pair_curve(same: NDArray[np.float32], other: NDArray[np.float32], thresholds: Sequence[float]) -> list[PairPoint]:
    """Join rates by threshold, of the cosines of pairs of one dialogue and of two, `(n_pairs,)` each."""
    rates = [(each, float(np.mean(same > each)), float(np.mean(other > each))) for each in thresholds]
    return [PairPoint(threshold, true, false, true - false) for threshold, true, false in rates]


def inputs_of(session: MixedSession, vectors: Vectors) -> list[SessionInput]:
    """A session's turns as the fold takes them, half a minute apart."""
    inputs = []
    for number, (turn, row) in enumerate(zip(session.turns, session.vectors, strict=True)):
        at = BEGINS + number * _BETWEEN_TURNS
        event = msgspec.structs.replace(turn, session_id=SESSION_ID, turn=number, timestamp=at, metadata=None)
        vector = vectors[row] if row >= 0 else None
        inputs.append(SessionInput(event, Position("turns", 0, number), at, None, vector))
    return inputs


def match(inputs: Sequence[SessionInput], places: Sequence[int], policy: Policy) -> tuple[list[str], int]:
    """Fold a session and follow its topic events.

    Returns:
        The topic of each of these turns, after all merging, and how many topics merged into others.
    """
    state: SessionState | None = None
    active, merged, joined = "", dict[str, str](), list[str]()
    for item in inputs:
        state, outputs = fold(state, item, policy)
        for event in outputs:
            if not isinstance(event, TopicChanged):
                continue
            if event.cause in _COMES_TO:
                active = event.topic_id
            elif event.cause == "merged" and not event.kept:
                merged[event.topic_id] = event.detail.removeprefix("into ")
                active = _resolved(active, merged)
        joined.append(active)
    return [_resolved(joined[place], merged) for place in places], len(merged)


def _resolved(topic_id: str, merged: dict[str, str]) -> str:
    while topic_id in merged:
        topic_id = merged[topic_id]
    return topic_id


def shortened(vectors: Vectors) -> Vectors:
    """Vectors as topics keep them, of unit length again, `(n, 256)`."""
    rows = [topic_vector(vector) for vector in vectors]
    width = next((len(row) for row in rows if row is not None), 0)
    return unit(np.array([np.zeros(width, np.float32) if row is None else row for row in rows], dtype=np.float32))


def unit(vectors: Vectors) -> Vectors:
    """Rows of unit length; zero rows stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled = np.zeros_like(vectors)
    np.divide(vectors, lengths, out=scaled, where=lengths > 0)
    return scaled


def simulate(vectors: Vectors, threshold: float, active_bonus: float, embedding: Embedding) -> list[int]:
    """The bare rule over one session's user turns: no merging, no eviction, nothing rounded.

    Args:
        vectors: `(n_user_turns, dim)`, of unit length.
        threshold: Cosine above which a message joins.
        active_bonus: Added to the active topic's cosine.
        embedding: What stands for a topic.
    """
    sums = np.zeros((len(vectors), vectors.shape[1]), dtype=np.float32)
    weights = np.zeros(len(vectors), dtype=np.int64)
    topics, active, joined = 0, -1, list[int]()
    for vector in vectors:
        if topics:
            cosines = unit(sums[:topics]) @ vector
            cosines[active] += active_bonus
            active = int(cosines.argmax())
        if not topics or cosines[active] <= threshold:
            active, topics = topics, topics + 1
        if embedding == "running mean" or not weights[active]:
            weights[active] = min(weights[active] + 1, MEMORY)
            length = float(np.linalg.norm(sums[active])) or 1.0
            sums[active] = sums[active] / length * (weights[active] - 1) + vector
        joined.append(active)
    return joined


def cosines_of_pairs(mixed: Mixed, vectors: Vectors) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cosines of all pairs of user turns within a session: of one dialogue, and of two."""
    same, other = [], []
    for session in mixed.sessions:
        rows, labels = vectors[session.user_rows], np.array(session.user_dialogues)
        one, another = np.triu_indices(len(labels), k=1)
        cosines, alike = (rows @ rows.T)[one, another], labels[one] == labels[another]
        same.append(cosines[alike])
        other.append(cosines[~alike])
    return np.concatenate(same), np.concatenate(other)
