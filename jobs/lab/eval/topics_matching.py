"""Assignment of each message of a session to a topic: by the project's own fold, and by simulations beside it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from jobs.lab.eval.topics_dialogues import BEGINS
from jobs.lab.eval.topics_sessions import Mixed, MixedSession
from models.events import OutputEvent, Position, TopicChanged
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

    Args:
        inputs: The session.
        places: Of the turns that are asked for.
        policy: With the threshold.

    Returns:
        The topic of each of these turns, after all merging, and how many topics merged into others.
    """
    state: SessionState | None = None
    active, merged, joined = "", dict[str, str](), list[str]()
    for item in inputs:
        state, outputs = fold(state, item, policy)
        active = _follow(outputs, active, merged)
        joined.append(active)
    return [_resolved(joined[place], merged) for place in places], len(merged)


def _follow(outputs: Sequence[OutputEvent], active: str, merged: dict[str, str]) -> str:
    """The active topic after these outputs."""
    for event in outputs:
        if not isinstance(event, TopicChanged):
            continue
        if event.cause in _COMES_TO:
            active = event.topic_id
        elif event.cause == "merged" and not event.kept:
            merged[event.topic_id] = event.detail.removeprefix("into ")
            active = _resolved(active, merged)
    return active


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
        places = session.user_places
        rows = vectors[[session.vectors[place] for place in places]]
        labels = np.array([session.dialogues[place] for place in places])
        upper = np.triu_indices(len(places), k=1)
        cosines = (rows @ rows.T)[upper]
        alike = labels[upper[0]] == labels[upper[1]]
        same.append(cosines[alike])
        other.append(cosines[~alike])
    return np.concatenate(same), np.concatenate(other)
