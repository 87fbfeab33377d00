"""A session that a model judges: score, mode, alert, and what the alert says of itself."""

import math

import msgspec
import pytest
from msgspec import structs

from models.events import ProfileUpdated, RiskPoint, SessionErased, Severity
from models.events.base import Mode
from models.policy import AppModes, ModePolicy, ModeThreshold, Policy
from models.policy.digest import policy_digest
from models.risk.combination import UNITS, UPSTREAM
from models.risk.escalation import PART
from tests.support.escalation_driver import MODEL, answer, escalate, judged_by, judgement, tell, told, upstream
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


def test_calm_turns_do_not() -> None:
    """No alert, and a probability near that of a session of which nothing is known."""
    session = alerted(0)
    escalate(session, 30, risk=0.02)

    assert ([], Mode.CALM) == (session.alerts, session.profile.mode)
    assert session.profile.score < 0.1


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


def test_alert_resolves_late() -> None:
    """Hysteresis: below the entry, above the exit, the alert stands; calm for a while, it is resolved."""
    session = alerted()
    turn = 6
    while session.alerts[-1].cause != "resolved":
        tell(session, turn, 0.2)
        turn += 1
    below = [point.turn for point in _points(session) if point.turn > 6 and point.score < 0.45]
    lowered = [point.turn for point in _points(session) if point.turn > 6 and point.mode in (Mode.CALM, Mode.WATCH)]

    assert lowered[0] > below[0]
    assert session.alerts[-1].turn == lowered[0] + POLICY.alerts.resolve_after_turns - 1


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


def test_state_of_the_release_before_goes_on() -> None:
    """An open session without the part is judged from its next user turn on."""
    session = Session()
    escalate(session, 4, risk=0.2)
    session.store()
    session.policy = POLICY
    answer(session, 4)
    assert session.state is not None
    unjudged = session.state.judged(POLICY)
    tell(session, 5, 0.2)

    assert (None, [5]) == (unjudged, [each.turn for each in judgement(session).turns])


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


def test_digest_tells_policies_apart() -> None:
    """By content, weights included, and the same content has the same name."""
    other = msgspec.structs.replace(MODEL, weights={"level": 1})
    digests = {policy_digest(each) for each in (Policy(), Policy(), POLICY, judged_by(), judged_by(other))}

    assert 3 == len(digests)
