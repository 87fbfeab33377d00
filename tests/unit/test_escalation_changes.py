"""A judged session whose model or rules change under it, and what it makes of refusals and of risks sent along."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from models.events import TurnsJudged
from models.risk.combination import probability_of
from tests.support.escalation_driver import MODEL, RISKY, answer, escalate, judged_by, judgement, tell, units
from tests.support.session_driver import NOON, Session

POLICY = judged_by()
REFUSAL = "I'm sorry, but I can't help with that."


def test_refusal_is_known_to_the_next_user_turn() -> None:
    """What the assistant refused and the user asks again counts more than the same risk without a refusal."""
    model = structs.replace(MODEL, weights={**MODEL.weights, "refusals": 10_000})
    refused, answered = Session(judged_by(model)), Session(judged_by(model))
    for session, reply in ((refused, REFUSAL), (answered, "All right.")):
        tell(session, 0, 0.4)
        answer(session, 1, reply)
        session.store()
        tell(session, 2, 0.4)

    assert judgement(refused).probability > judgement(answered).probability


@pytest.mark.parametrize(
    "changes",
    [
        {"model": structs.replace(MODEL, weights={"level": 9_000, "cusum": 30_000})},
        {"model": structs.replace(MODEL, name="made-up 2", base=-20_000, weights={"level": 9_000, "cusum": 30_000})},
        {"model": structs.replace(MODEL, base=-20_000)},
        {"judge_weight": 0.1},
        {"judge_bound": 0.5},
    ],
)
def test_other_rules_weigh_what_came_before_anew(changes: dict[str, Any]) -> None:
    """Contributions, shares and score add up after any change of the policy, before and after the next turn.

    Under the model's name or another; only new turns have new shares.
    """
    session = Session(POLICY)
    escalate(session, 6)
    session.put(TurnsJudged(session_id="s", timestamp=NOON, alert_id=session.alerts[0].alert_id, judge="g",
                            probability=0.99))  # fmt: skip
    session.store()
    session.policy = judged_by(**changes)
    before = judgement(session)
    tell(session, 6, 0.5)
    after = judgement(session)

    assert (session.policy.escalation.model or MODEL).name == after.model
    assert before.turns == after.turns[:-1]
    for whole in (before, after):
        base = units(whole.base_log_odds)
        by_signal = base + sum(units(each.log_odds) for each in whole.contributions)
        by_turn = base + units(whole.earlier_log_odds) + sum(units(each.log_odds) for each in whole.turns)
        assert by_signal == by_turn == units(whole.log_odds)
        assert whole.probability == pytest.approx(probability_of(units(whole.log_odds)))


def test_steady_attack_over_a_model_change_alerts() -> None:
    """By weights that saw nothing in it, then by others: what was known already is evidence, though no turn adds."""
    session = Session(judged_by(structs.replace(MODEL, weights={"level": -1})))
    escalate(session, 60)
    session.store()
    session.policy = judged_by(structs.replace(MODEL, name="made-up 2", weights={"level": 60_000, "run": -1}))
    tell(session, 60, RISKY - 0.1)

    assert judgement(session).turns[-1].log_odds <= 0
    assert ["raised"] == [alert.cause for alert in session.alerts]
