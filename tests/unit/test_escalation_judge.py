"""A judged session: when a slower judge is asked, what its answer moves, and what a change of model or rules does."""

from typing import Any

import pytest
from msgspec import structs

from models.events import JudgementRequested, Role, TurnsJudged
from models.policy import AlertPolicy
from models.risk.combination import JUDGE, probability_of
from tests.support.escalation_driver import MODEL, RISKY, answer, escalate, judged_by, judgement, tell, told, units
from tests.support.limits import too_large
from tests.support.session_driver import NOON, Session

POLICY = judged_by()
ASKING = judged_by(ask_judge=True, alerts=AlertPolicy(worsened_step=1.0))
"""Without changes that are the session's own."""
REFUSAL = "I'm sorry, but I can't help with that."


def asked() -> Session:
    """A session whose alert is read by a judge."""
    session = Session(ASKING)
    escalate(session, 8, risk=0.5)
    assert ["raised"] == [alert.cause for alert in session.alerts]
    return session


def answered(session: Session, probability: float | None, alert_id: str | None = None) -> None:
    """The judge's answer for the session's alert, or another."""
    session.put(
        TurnsJudged(
            session_id="s",
            timestamp=NOON,
            alert_id=alert_id or session.alerts[0].alert_id,
            judge="guard",
            probability=probability,
            failure="" if probability is not None else "timeout",
        )
    )


def test_judge_is_asked_when_an_alert_is_raised() -> None:
    """With the turns at hand, long ones cut; nobody is asked where there is no judge, nor waited for."""
    session = Session(ASKING)
    escalate(session, 3)
    tell(session, 3, 0.9, "\x01" * 30_000)
    asked = [out for out in session.outputs if isinstance(out, JudgementRequested)]
    raised = session.alerts[0]
    alone = Session(POLICY)
    escalate(alone, 6)

    assert (raised.alert_id, raised.turn) == (asked[0].alert_id, asked[0].turn)
    assert list(range(raised.turn + 1)) == [each.turn for each in asked[0].turns]
    assert {Role.USER} == {each.role for each in asked[0].turns}
    assert [each for each in asked if too_large(each)] == []
    assert not any(isinstance(out, JudgementRequested) for out in alone.outputs)


@pytest.mark.parametrize(("says", "cause", "moves"), [(0.999, "worsened", 1), (0.6, "judged", 1), (0.01, "judged", -1)])
def test_judge_moves_the_alert(says: float, cause: str, moves: int) -> None:
    """Its answer raises or lowers the probability, within its bound, and the alert is told anew at once."""
    session = asked()
    before = judgement(session)
    answered(session, says)
    session.store()
    after = told(session.alerts[-1])
    added = next(each.log_odds for each in after.contributions if each.signal == JUDGE)

    assert cause == session.alerts[-1].cause
    assert (added > 0) == (moves > 0)
    assert abs(added) <= POLICY.escalation.judge_bound
    assert units(before.log_odds) + units(added) == units(after.log_odds) == units(judgement(session).log_odds)
    assert before.turns == after.turns
    assert session.alerts[-1].score == session.profile.score == after.probability
    assert 1 == sum(isinstance(out, JudgementRequested) for out in session.outputs)


@pytest.mark.parametrize(("probability", "alert_id"), [(0.9, "another"), (None, None)])
def test_answers_that_change_nothing(probability: float | None, alert_id: str | None) -> None:
    """Of another alert, or none at all."""
    session = asked()
    before = (len(session.outputs), judgement(session))
    answered(session, probability, alert_id)

    assert before == (len(session.outputs), judgement(session))


def test_answer_that_comes_after_the_end_opens_nothing() -> None:
    """The session is closed, or was never there."""
    closed, unknown = asked(), Session(ASKING)
    closed.end()
    told_before = len(closed.outputs)
    answered(closed, 0.9)
    answered(unknown, 0.9, "any")
    assert closed.state is not None
    assert unknown.state is not None

    assert (told_before, True) == (len(closed.outputs), closed.state.closed)
    assert ({}, []) == (unknown.state.changed_parts(), unknown.outputs)


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
        {"model": structs.replace(MODEL, weights={"level": 99_000})},
        {"model": structs.replace(MODEL, name="made-up 2", base=-20_000, weights={"level": 99_000})},
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
    answered(session, 0.99)
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
