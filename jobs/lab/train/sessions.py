"""Labelled dialogues through the real fold: what the sequence signals say after each user turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from jobs.shared.dialogues import LabelledDialogue
from models.events import OutputEvent, Position, Role, Turn
from models.policy import Policy
from models.policy.app import AppPolicy
from models.policy.escalation import CombinationModel, EscalationPolicy
from models.policy.project import ProjectPolicy
from models.policy.topic import TopicPolicy
from models.policy.user import UserPolicy
from models.risk.sequence.signals import SIGNAL_NAMES
from models.session.fold import SessionState, fold
from models.wire.arrival import SessionInput
from streams.ports import Vectors

Floats = NDArray[np.float64]

BETWEEN_TURNS = timedelta(minutes=1)
"""Labelled dialogues have no times; this far apart no two turns are pieces of one message."""
_START = datetime(2026, 1, 1, tzinfo=UTC)
_UNWEIGHED = CombinationModel(name="signals alone", base=0, weights={})


def judging_policy(policy: Policy) -> Policy:
    """The policy without memories of topics, users, apps and projects: no judgement looks at them."""
    return structs.replace(
        policy,
        topics=TopicPolicy(enabled=False),
        users=UserPolicy(enabled=False),
        apps=AppPolicy(enabled=False),
        projects=ProjectPolicy(enabled=False),
    )


def turns_of_dialogue(
    dialogue: LabelledDialogue, begins: datetime = _START, numbers: Iterable[int] | None = None
) -> list[Turn]:
    """Its turns as events, one minute apart; its source is the app. Without `numbers` they count from 0."""
    return [
        Turn(
            session_id=dialogue.session_id,
            user_id=dialogue.session_id,
            app_id=dialogue.source,
            turn=number,
            role=said.role,
            content=said.content,
            timestamp=begins + place * BETWEEN_TURNS,
        )
        for place, (number, said) in enumerate(zip(numbers or count(), dialogue.turns, strict=False))
    ]


def folded(
    dialogue: LabelledDialogue, risks: Sequence[float], vectors: Vectors, policy: Policy
) -> Iterator[tuple[Turn, SessionState, list[OutputEvent]]]:
    """Fold a dialogue turn by turn: each turn, the session after it, and what it emitted."""
    state: SessionState | None = None
    user_turn = 0
    for offset, turn in enumerate(turns_of_dialogue(dialogue)):
        risk, vector = None, None
        if turn.role is Role.USER:
            risk, vector = risks[user_turn], vectors[user_turn] if turn.content else None
            user_turn += 1
        item = SessionInput(turn, Position("turns", 0, offset), turn.timestamp, risk, vector)
        state, outputs = fold(state, item, policy)
        yield turn, state, outputs


def signals_of(dialogue: LabelledDialogue, risks: Sequence[float], vectors: Vectors) -> Floats:
    """Value of every sequence signal after each user turn, `(n_user_turns, n_signals)`, each 0-1."""
    policy = judging_policy(Policy(escalation=EscalationPolicy(model=_UNWEIGHED)))
    rows = []
    for turn, state, _ in folded(dialogue, risks, vectors, policy):
        escalating = state.escalating(policy)
        if turn.role is Role.USER and escalating is not None:
            values = escalating.values
            rows.append([values[name] for name in SIGNAL_NAMES])
    return np.array(rows)
