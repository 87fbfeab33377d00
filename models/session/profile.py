"""Layer 3, the session profile: what one counted turn changes in it.

Counts, sums, peak, mean and the risk window do not depend on the order in which turns arrive: the window holds the
highest-numbered scored turns, sorted. Topic changes and modes follow arrival.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import datetime
from enum import Enum, auto

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from models.events import Slope, Turn
from models.policy import Policy
from models.risk.signals import COUNTED, SignalCombination, combine, fit_slope, measure_patterns, observe_turn
from models.session.state import Open, SessionState
from models.text.features import Features, detect_features
from models.text.summary import count_topics, topics_of
from models.text.words import fold_text, words_of

_SEEN_BITS = 64
_SEEN_MASK = 2**_SEEN_BITS - 1


class TurnOrder(Enum):
    """What a turn's number says about it."""

    NEW = auto()
    DUPLICATE = auto()
    LATE = auto()


def admit(head: Open, turn: int, reach_turns: int) -> TurnOrder:
    """Tell a new turn number from a known one and from one too old to tell, and note it.

    Args:
        head: Of the session; a new number is noted in it.
        turn: The number.
        reach_turns: How far below the highest number it may lie, up to 64.
    """
    if turn <= head.floor:
        return TurnOrder.LATE
    ahead = turn - head.last_turn
    if ahead > 0:
        head.seen = ((head.seen << ahead) | 1) & _SEEN_MASK if ahead < _SEEN_BITS else 1
        head.last_turn = turn
        return TurnOrder.NEW
    if -ahead >= reach_turns:
        return TurnOrder.LATE
    if head.seen >> -ahead & 1:
        return TurnOrder.DUPLICATE
    head.seen |= 1 << -ahead
    return TurnOrder.NEW


def count_turn(head: Open, number: int, at: datetime) -> None:
    """Numbers and times that every counted turn moves."""
    if head.turn_count == 0:
        head.started_at = head.latest_at = at
        head.first_turn = number
    head.started_at = min(head.started_at, at)
    head.latest_at = max(head.latest_at, at)
    head.first_turn = min(head.first_turn, number)
    head.turn_count += 1
    head.turns_since_profile += 1
    head.turns_in_mode += 1


def insert_risk(head: Open, turn: int, risk: float, window: int) -> None:
    """Count a risk, and put it at its turn's place among the `window` highest-numbered scored turns."""
    head.scored_turns += 1
    head.risk_sum += risk
    head.peak_risk = max(head.peak_risk, risk)
    turns, risks = head.risk_turns, head.risks
    place = bisect_left(turns, turn)
    turns.insert(place, turn)
    risks.insert(place, risk)
    surplus = len(turns) - window
    if surplus > 0:
        del turns[:surplus], risks[:surplus]


class TurnFindings(Struct, frozen=True, gc=False):
    """What a user's turn was found to do.

    Attributes:
        words: Its words, folded, in order.
        features: What it does.
        nearness: Cosine to the user turn before it, None for the first or without vectors.
        marks: What its vector says beside the remembered ones: bits of `TurnMark`.
    """

    words: list[str]
    features: Features
    nearness: float | None
    marks: int


class RiskMeasures(Struct, frozen=True, gc=False):
    """Slope of the risk window and the signals combined, at one moment."""

    slope: Slope
    combination: SignalCombination


def measure(head: Open, policy: Policy) -> RiskMeasures:
    """Measure every signal of a session."""
    slope = fit_slope(head.risks)
    combination = combine(
        risks=head.risks,
        slope=slope,
        behaviour=head.behaviour,
        turn_count=head.turn_count,
        repeated_topics=head.repeated_topics,
        patterns=head.patterns,
        policy=policy.risk,
    )
    return RiskMeasures(slope, combination)


def observe_behaviour(
    state: SessionState, head: Open, turn: Turn, vector: NDArray[np.float32] | None, *, risk: float, policy: Policy
) -> TurnFindings:
    """Count what a user's turn does and names, and compare it with earlier ones by its quantised vector.

    A topic change is a turn that names topics but none of those the user named last, and whose vector, if there is one,
    is not near the one before. A turn that comes late is none, and does not become the one to compare with.
    """
    folded = fold_text(turn.content)
    words = words_of(folded)
    features = detect_features(folded, set(words))
    counts = head.behaviour
    counts.question_count += features.question
    counts.imperative_count += features.imperative
    counts.probing_attempts += features.probing
    counts.hypothetical_count += features.hypothetical
    counts.meta_instruction_count += features.meta_instruction
    risky_topics = policy.risk.risky_topics
    topics = topics_of(words, risky_topics, policy.profile.topics_per_turn)
    count_topics(head.repeated_topics, topics, risky_topics, policy.profile.repeated_topics)
    risky = risk >= policy.risk.risky_turn
    nearness, marks = None, 0
    if vector is not None:
        ring = state.vectors(policy.memory.recent_vectors)
        nearness = observe_turn(ring, turn.turn, vector, features, risky=risky, policy=policy.detectors)
        if ring.touched & COUNTED:
            head.patterns = measure_patterns(ring, policy.detectors)
        marks = ring.marks_of(turn.turn)
    if turn.turn > head.last_user_turn:
        head.last_user_turn = turn.turn
        if topics:
            left = nearness is None or nearness < policy.detectors.topic_change
            counts.topic_changes += bool(left and head.previous_topics and set(topics).isdisjoint(head.previous_topics))
            head.previous_topics = topics
    return TurnFindings(words, features, nearness, marks)
