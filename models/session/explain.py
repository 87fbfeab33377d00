"""Explanation of an alert: a sentence with numbers and with the turns it rests on. Never a turn's text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from models.events import Contribution, Escalation, EvidenceTurn, SignalShare, Slope
from models.policy import Policy
from models.risk.signals import Behaviour
from models.risk.telling import outcome
from models.session.state import Open
from models.state.vectors import TurnMark, VectorRing

_PHRASES = 3
_NAMED_TURNS = 6
_LEAST_SHARE = 0.05


def explain(head: Open, signals: list[SignalShare], slope: Slope, ring: VectorRing, policy: Policy) -> str:
    """The strongest signals, largest share first, as one readable line."""
    strongest = sorted((s for s in signals if s.share >= _LEAST_SHARE), key=lambda s: -s.share)[:_PHRASES]
    return "; ".join(_phrase(signal, head, slope, ring, policy) for signal in strongest) or "no signal stands out"


def explain_judgement(escalation: Escalation) -> str:
    """The probability and what raised it most, as one readable line, with what it would be without the strongest."""
    raising = [each for each in escalation.contributions if each.log_odds > 0][:_PHRASES]
    said = [f"{each.why} ({each.log_odds:+.2f}{_counterfactual(each) * (n == 0)})" for n, each in enumerate(raising)]
    heading = f"probability {escalation.probability:.2f}, alert from {escalation.threshold:.2f}"
    return f"{heading}: {'; '.join(said) or 'no signal stands out'}"


def _counterfactual(strongest: Contribution) -> str:
    return f"; without it {strongest.probability_without:.2f}, {outcome(strongest)}"


def _phrase(signal: SignalShare, head: Open, slope: Slope, ring: VectorRing, policy: Policy) -> str:
    behaviour: Behaviour = head.behaviour
    turns = head.turn_count
    if signal.name == "level":
        highest = max(head.risks)
        at = head.risk_turns[head.risks.index(highest)]
        return f"recent risk level {signal.value:.2f} (highest {highest:.2f} at turn {at})"
    if signal.name == "trajectory":
        return f"risk rises {slope.per_turn:.3f} ± {slope.stderr:.3f} per turn over {slope.n} turns"
    if signal.name == "persistence":
        named = {t: head.repeated_topics[t] for t in policy.risk.risky_topics if t in head.repeated_topics}
        return "turns on risky topics (" + ", ".join(f"{t}: {n}" for t, n in named.items()) + ")"
    if signal.name == "anomaly":
        return (
            f"{behaviour.imperative_count} imperatives, {behaviour.topic_changes} topic changes and "
            f"{behaviour.probing_attempts} probing questions in {turns} turns"
        )
    if signal.name == "suspicion":
        return (
            f"{behaviour.probing_attempts} probing, {behaviour.hypothetical_count} hypothetical and "
            f"{behaviour.meta_instruction_count} rule-changing turns of {turns}"
        )
    text, mark = {
        "repeated_probing": ("asked the same again in other words", TurnMark.REPHRASED | TurnMark.REPEATED),
        "topic_cycling": ("returned to a risky topic after a detour", TurnMark.RETURNED),
        "information_gathering": ("gathers information around a risky topic", TurnMark.GATHERED),
    }[signal.name]
    return f"{text} ({_turns(ring.marked(mark))})"


def _turns(turns: Iterable[int]) -> str:
    return "turns " + ", ".join(map(str, list(turns)[-_NAMED_TURNS:]))


def evidence(
    session_id: str, head: Open, ring: VectorRing, limit: int, shares: Mapping[int, float] | None = None
) -> list[EvidenceTurn]:
    """The turns an alert rests on, those with most weight, in order of turn.

    A turn weighs what it added to the log-odds, and one that added nothing is none. Where no model judges (`shares` is
    None) it weighs its risk, and half for each pattern it belongs to. Only turns whose share is kept, or of the risk
    window and of the remembered vectors can be named; older ones are in the archive.
    """
    risks = dict(zip(head.risk_turns, head.risks, strict=True))
    marks = dict(zip(ring.turns, ring.marks, strict=True))
    if shares is None:
        weighed = {turn: risks.get(turn, 0.0) + len(_why(marks.get(turn, 0))) / 2 for turn in {*risks, *marks}}
    else:
        weighed = dict(shares)
    heaviest = sorted(weighed, key=lambda turn: (-weighed[turn], turn))[:limit]
    added = shares or {}
    # The remembered turn before it was refused: part of why its share is what it is, where a model judges.
    after = {turn for before, turn in pairwise(sorted(marks)) if marks[before] & TurnMark.REFUSED and turn in added}
    return [
        EvidenceTurn(
            id=f"{session_id}_{turn}",
            turn=turn,
            risk=risks.get(turn, 0.0),
            why=", ".join(
                [
                    f"risk {risks[turn]:.2f}" if turn in risks else "earlier",
                    *_why(marks.get(turn, 0)),
                    *["after a refusal"] * (turn in after),
                ]
            ),
            log_odds=added.get(turn, 0.0),
        )
        for turn in sorted(turn for turn in heaviest if weighed[turn] > 0)
    ]


def _why(marks: int) -> list[str]:
    names = (
        (TurnMark.PROBING, "probes the limits"),
        (TurnMark.REFUSED, "was refused"),
        (TurnMark.REPHRASED, "asks again in other words"),
        (TurnMark.RETURNED, "returns after a detour"),
        (TurnMark.GATHERED, "gathers around a risky topic"),
    )
    return [name for mark, name in names if marks & mark]
