"""What holds for every judged session, whatever comes in and whatever the model's weights are."""

from collections.abc import Sequence
from itertools import groupby

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from models.events import AlertChanged, AlertStatus, Escalation, OutputEvent, ProfileUpdated
from models.policy import AlertPolicy, Policy
from models.policy.escalation import CombinationModel
from models.risk.combination import Grounds, judge
from models.risk.escalation import Escalating
from models.risk.sequence import SIGNAL_NAMES
from models.session.fold import SessionState
from tests.property.test_session import STEPS, Step, inputs
from tests.property.test_session import run as run_log
from tests.support.escalation_driver import MODEL, judged_by, judgement, units
from tests.support.session_driver import Session, said

RATIO = st.floats(0, 1)
WEIGHTS = st.dictionaries(st.sampled_from(SIGNAL_NAMES), st.integers(-60_000, 60_000))
MODELS = st.builds(
    lambda base, weights: msgspec.structs.replace(MODEL, base=base, weights=weights),
    st.integers(-200_000, 20_000),
    WEIGHTS,
)
VALUES = st.dictionaries(st.sampled_from(SIGNAL_NAMES), RATIO)


def run(steps: Sequence[Step], policy: Policy, cuts: Sequence[int] = ()) -> tuple[list[OutputEvent], Escalating | None]:
    """Fold a log, storing and loading the state at each cut; gives what came out, and the judgement at the end."""
    stored, outputs = run_log(inputs(steps), cuts, policy)
    state = SessionState.load(stored) if stored else None
    return outputs, None if state is None or state.closed else state.judged(policy)


def told(judged: Escalating, outputs: Sequence[OutputEvent]) -> list[Escalation]:
    """The judgement at the end, and those of all alerts on the way."""
    alerts = [out.escalation for out in outputs if isinstance(out, AlertChanged) and out.escalation is not None]
    return [judged.escalation(0.45), *alerts]


@given(STEPS, MODELS, st.integers(1, 8), st.lists(st.integers(0, 60)))
def test_contributions_and_shares_add_up_exactly(
    steps: list[Step], model: CombinationModel, kept: int, cuts: list[int]
) -> None:
    """In whole ten-thousandths: base and contributions, base and turns with what came before, both are the log-odds."""
    outputs, judged = run(steps, judged_by(model, kept_turns=kept), cuts)
    for whole in told(judged, outputs) if judged else ():
        base = units(whole.base_log_odds)
        by_signal = base + sum(units(each.log_odds) for each in whole.contributions)
        by_turn = base + units(whole.earlier_log_odds) + sum(units(each.log_odds) for each in whole.turns)

        assert by_signal == by_turn == units(whole.log_odds)
        assert 0.0 <= whole.probability <= 1.0
        assert len(whole.turns) <= kept


@given(
    st.lists(st.tuples(RATIO, st.one_of(st.none(), RATIO)), min_size=2, max_size=30), st.sampled_from([0.05, 0.1, 0.3])
)
def test_an_open_alert_is_never_more_than_a_step_behind(turns: list[tuple[float, float | None]], step: float) -> None:
    """After any turn what was told last understates neither the probability nor the worst turn by more than a step.

    Nor is every turn told: in a row at most one change for each step of either, and one for the rise to critical.
    """
    session = Session(judged_by(MODEL, alerts=AlertPolicy(worsened_step=step)))
    worst_told: dict[str, float] = {}
    for number, (scored, sent) in enumerate(turns):
        before = len(session.alerts)
        session.put(said(number, risk=sent), risk=scored)
        worst = max(scored if sent is None else sent for scored, sent in turns[: number + 1])
        if not session.alerts or (last := session.alerts[-1]).status is AlertStatus.RESOLVED:
            continue
        if len(session.alerts) > before:
            worst_told[last.alert_id] = worst

        assert judgement(session).probability - last.score <= step
        assert worst - worst_told[last.alert_id] <= step
    longest = max(
        (len([*run]) for cause, run in groupby(each.cause for each in session.alerts) if cause == "worsened"), default=0
    )

    assert longest <= 2 / step + 1


@given(VALUES, RATIO, RATIO, MODELS)
def test_more_upstream_risk_never_lowers_the_probability(
    values: dict[str, float], one: float, other: float, model: CombinationModel
) -> None:
    """Beside the same text: none sent, little, much; and never below the score of what was sent."""
    policy = judged_by(model).escalation
    assert policy.model is not None
    little, much = sorted((one, other))
    none, low, high = (judge(Grounds(values, sent), policy.model, policy).probability for sent in (None, little, much))

    assert none <= low <= high
    assert high >= much - 1e-9


@given(STEPS, RATIO, MODELS)
def test_probability_is_never_below_the_score_of_what_was_sent(
    steps: list[Step], sent: float, model: CombinationModel
) -> None:
    """After a user turn that brought a risk, without a judge, the source formulas' score is the least."""
    log = [step for step in steps if step[0] == "turn"]
    log += [("turn", 92, 4, sent, 60), ("end", 0, 0, None, 0)]
    seed, judged = (
        [out for out in run(log, policy)[0] if isinstance(out, ProfileUpdated)][-1]
        for policy in (Policy(), judged_by(model))
    )

    assert judged.score >= seed.score - 1e-9
