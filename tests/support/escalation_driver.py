"""Sessions that a model judges: its weights are made up, so that a few risky turns alert and calm ones do not."""

from models.events import AlertChanged, Escalation, Role
from models.policy import AlertPolicy, ModePolicy, Policy
from models.policy.escalation import CombinationModel, EscalationPolicy
from models.risk.combination import UNITS
from tests.support.session_driver import Session, said

MODEL = CombinationModel(
    name="made-up 1",
    base=-30_000,
    weights={"level": 82_000, "refusals": 9_999, "instructions": -3_001},
)
RISKY = 0.8


def judged_by(
    model: CombinationModel | None = MODEL,
    *,
    alerts: AlertPolicy | None = None,
    modes: ModePolicy | None = None,
    **escalation: object,
) -> Policy:
    """The default policy with a model in it."""
    return Policy(
        escalation=EscalationPolicy(model=model, **escalation),  # type: ignore[arg-type]
        alerts=alerts or AlertPolicy(),
        modes=modes or ModePolicy(),
    )


def tell(session: Session, turn: int, risk: float, content: str = "The boat needs sails.", **more: object) -> None:
    """One user turn with the scorer's risk; `risk` among `more` fields would be the producer's."""
    session.put(said(turn, content, **more), risk=risk)


def answer(session: Session, turn: int, content: str = "All right.", **more: object) -> None:
    """One turn of the assistant."""
    session.put(said(turn, content, role=Role.ASSISTANT, **more))


def upstream(session: Session, turn: int, risk: float, scored: float = 0.0) -> None:
    """One user turn that brought a risk of its own, beside the scorer's."""
    session.put(said(turn, risk=risk), risk=scored)


def escalate(session: Session, turns: int, risk: float = RISKY, first: int = 0) -> None:
    """User turns of one risk."""
    for turn in range(first, first + turns):
        tell(session, turn, risk)


def judgement(session: Session) -> Escalation:
    """What the session's judgement is now, as an alert would tell it."""
    assert session.state is not None
    judged = session.state.judged(session.policy)
    assert judged is not None
    return judged.escalation(session.policy.modes.elevated.enter)


def units(log_odds: float) -> int:
    """Ten-thousandths, as the state keeps them."""
    return round(log_odds * UNITS)


def told(alert: AlertChanged) -> Escalation:
    """The judgement in an alert, which must have one."""
    assert alert.escalation is not None
    return alert.escalation
