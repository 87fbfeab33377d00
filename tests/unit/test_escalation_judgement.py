"""A session that a model judges: score, mode, alert, what the alert says of itself, and what a slower judge moves."""

import math
from typing import Any

import msgspec
import pytest
from msgspec import structs

from models.events import JudgementRequested, ProfileUpdated, RiskPoint, Role, SessionErased, Severity, TurnsJudged
from models.events.base import Mode
from models.policy import AlertPolicy, AppModes, ModePolicy, ModeThreshold
from models.policy.digest import policy_digest
from models.risk.combination import JUDGE, UNITS, UPSTREAM, probability_of
from models.risk.escalation import PART
from tests.support.escalation_driver import MODEL, answer, escalate, judged_by, judgement, tell, told, units, upstream
from tests.support.limits import too_large
from tests.support.session_driver import NOON, Session, said

POLICY = judged_by()
REFUSAL = "I'm sorry, but I can't help with that."


def alerted(turns: int = 6) -> Session:
    """A session whose risky turns raised an alert."""
    session = Session(POLICY)
    escalate(session, turns)
    return session


def test_risky_turns_raise_an_alert_that_explains_itself() -> None:
    """Probability above the threshold, contributions and turns that add up, evidence, counterfactual, version."""
    session = Session(POLICY)
    escalate(session, 8, risk=0.6)
    raised = session.alerts[0]
    whole = told(raised)
    strongest = whole.contributions[0]

    assert ("raised", whole.probability, MODEL.name) == (raised.cause, raised.score, whole.model)
    assert whole.probability >= whole.threshold == 0.45
    assert raised.reason.startswith(f"probability {whole.probability:.2f}, alert from 0.45: {strongest.why} (+")
    assert f"; without it {strongest.probability_without:.2f}, no alert)" in raised.reason
    assert [f"s_{each.turn}" for each in raised.evidence] == [each.id for each in raised.evidence]
    assert {each.turn: each.log_odds for each in whole.turns if each.log_odds > 0} == {
        each.turn: each.log_odds for each in raised.evidence
    }
    assert policy_digest(POLICY) == raised.policy_digest
    assert "sails" not in msgspec.json.encode(raised).decode()


@pytest.mark.parametrize(("opening", "named"), [(0.15, False), (0.6, True)])
def test_evidence_is_what_added(opening: float, named: bool) -> None:
    """A greeting makes a level where none was, and is none; nor is a refused turn that lowered the log-odds."""
    session = Session(POLICY)
    session.put(said(0, "Hello there."), risk=opening, vector=[1.0] * 64)
    for turn, risk in ((2, 0.8), (4, 0.05), (6, 0.8), (8, 0.8), (10, 0.8)):
        session.put(said(turn), risk=risk, vector=[1.0] * 64)
        answer(session, turn + 1, REFUSAL)
    alert = session.alerts[-1]
    added = {each.turn: each.log_odds for each in told(alert).turns}

    assert added[0] > 0 > added[4]
    assert (named, False) == (0 in {each.turn for each in alert.evidence}, 4 in {each.turn for each in alert.evidence})
    assert all(each.log_odds == added[each.turn] > 0 for each in alert.evidence)


def test_judgement_moves_score_mode_and_risk_points() -> None:
    """The probability after each turn is its risk point's score, and the profile's."""
    session = alerted(10)
    session.end()
    points = _points(session)
    raised = session.alerts[0]

    assert session.profile.score == points[-1].score > points[0].score
    assert [raised.score] == [point.score for point in points if point.turn == raised.turn]
    assert {0.8} == {point.risk for point in points}
    assert session.profile.mode is Mode.CRITICAL


def _points(session: Session) -> list[RiskPoint]:
    return [point for out in session.outputs if isinstance(out, ProfileUpdated) for point in out.risk_points]


def test_each_app_has_its_thresholds() -> None:
    """What alerts in one app does not in another, and the alert names the threshold of its own."""
    strict = AppModes(
        app_id="a", elevated=ModeThreshold(enter=0.15, leave=0.1), critical=ModeThreshold(enter=0.999, leave=0.998)
    )
    modes = ModePolicy(apps=(strict,))
    here, there = Session(judged_by(modes=modes)), Session(judged_by(modes=modes))
    for turn in range(5):
        tell(here, turn, 0.4)
        tell(there, turn, 0.4, app_id="b")

    assert {0.15} == {told(alert).threshold for alert in here.alerts}
    assert [] == there.alerts


@pytest.mark.behaviour("risk-17")
def test_model_can_be_off() -> None:
    """`enabled = false` is as if there was no model: the source formulas."""
    off, without = Session(judged_by(enabled=False)), Session(judged_by(None))
    for session in (off, without):
        escalate(session, 12)

    assert off.state is not None
    assert (without.profile, None, None) == (off.profile, off.alerts[0].escalation, off.state.changed_parts().get(PART))


def test_one_very_risky_turn_alerts_only_by_its_producer() -> None:
    """The scorer's risk of one turn is one ground among others; a producer's demands an alert at once."""
    policy = judged_by(structs.replace(MODEL, base=-50_000))  # By which all that one turn can say is not enough.
    scored, sent = Session(policy), Session(policy)
    tell(scored, 0, 0.99)
    upstream(sent, 0, 0.95)

    assert scored.profile.score > 0.3
    assert [] == scored.alerts
    assert [Severity.CRITICAL] == [alert.severity for alert in sent.alerts]
    assert UPSTREAM in {each.signal for each in told(sent.alerts[0]).contributions}


def test_counterfactual_is_the_judgement_without_the_signal() -> None:
    """Each contribution says what a judgement from the beginning without it would say."""
    session = Session(POLICY)
    escalate(session, 5, risk=0.6)
    answer(session, 5, REFUSAL)
    upstream(session, 6, 0.5, scored=0.4)
    whole = judgement(session)
    values = {each.signal: each.value for each in whole.contributions}

    assert {"level", "refusals", UPSTREAM} == values.keys()
    for each in whole.contributions:
        left = {signal: value for signal, value in values.items() if signal != each.signal}
        assert each.probability_without == pytest.approx(_probability(left), abs=1e-4)
        assert each.alert_without == (each.probability_without >= 0.45)
    assert whole.probability == pytest.approx(_probability(values), abs=1e-4)


def _probability(values: dict[str, float]) -> float:
    """The formulas of `models.risk.combination`, without rounding."""
    sent = values.get(UPSTREAM, 0.0)
    text = MODEL.base + sum(MODEL.weights[name] * value for name, value in values.items() if name != UPSTREAM)
    odds = math.exp(text / UNITS) + sent / (1 - sent)
    return odds / (1 + odds)


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("end", ["end", "erase"])
def test_part_goes_with_the_session(end: str, stored: bool) -> None:
    """Closed or erased, nothing of the judgement is left; what reopens begins anew, in the same batch too."""
    session = alerted()
    session.store()
    kept = PART in session.stored
    if end == "end":
        session.end()
    else:
        session.put(SessionErased(session_id="s", timestamp=NOON, request_id="r"))
    assert session.state is not None
    gone = session.state.changed_parts()[PART] is None
    if stored:
        session.store()
    tell(session, 90, 0.1)

    assert (True, True) == (kept, gone)
    assert [90] == [each.turn for each in judgement(session).turns]


ASKING = judged_by(ask_judge=True, alerts=AlertPolicy(worsened_step=1.0))
"""Without changes that are the session's own."""


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
