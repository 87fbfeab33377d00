"""An alert in words, the same wherever it is told. Names, numbers and turns; never a turn's text.

Read first: `told`, what a person needs to act. The judgement in log-odds is its `grounds`, below a fold.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from models.events import AlertChanged, Contribution, Escalation, Harm
from models.policy.notify import NotifyPolicy

_LATEST = 3
"""Turns that make the trend."""
_LEAST_STEP = 0.3
"""Log-odds by which these turns together raise or lower what is said to rise or fall."""
_LEAST_SLOPE = 0.01
"""Risk per turn likewise, where no model judges."""
_MOST_GROUNDS = 3
_DOES: Final = {
    Harm.PRIVACY: "has been asking about the private lives of others",
    Harm.FRAUD: "has been asking about fraud",
    Harm.WEAPONS: "has been asking about weapons",
    Harm.SELF_HARM: "has been speaking of self-harm",
    Harm.CYBER: "has been asking about attacks on computers",
    Harm.VIOLENCE: "has been asking about violence",
    Harm.HATE: "has been asking for hate",
    Harm.OTHER: "has been escalating",
}
_NEWS: Final = {
    "worsened": "Worse: ",
    "renotified": "Still: ",
    "acknowledged": "Acknowledged: ",
    "assigned": "Assigned to {assignee}: ",
    "snoozed": "Snoozed until {until:%Y-%m-%d %H:%M}Z: ",
    "duplicate": "Duplicate of alert {duplicate_of}: ",
    "woken": "Again, after a rest: ",
    "resolved": "Resolved: ",
}


class ToldAlert(Struct, frozen=True, kw_only=True):
    """An alert as a person is told of it.

    Attributes:
        sentence: What, who and since which turn; how probable, whether it rises, and the worst turn.
        link: The session on the live page, at its worst turn; empty where `http.public_url` is not set.
        next_step: What to do, by category, of the policy; empty once it is resolved.
        grounds: Why, in log-odds: for whoever wants to know, below a fold.
    """

    sentence: str
    link: str
    next_step: str
    grounds: list[str]


def told(alert: AlertChanged, policy: NotifyPolicy, link: str = "") -> ToldAlert:
    """Put an alert into words. `link`: address of its session on the live page."""
    return ToldAlert(
        sentence=sentence(alert),
        link=link,
        next_step=policy.next_step(alert),
        grounds=grounds(alert),
    )


def sentence(alert: AlertChanged) -> str:
    """What, who, since which turn, how probable, whether it rises, and the worst turn, in one sentence."""
    if alert.cause == "erased":
        return f"Session {alert.session_id} (app {alert.app_id}) was erased: its alert is over."
    who = f"session {alert.session_id} (user {alert.user_id}, app {alert.app_id})"
    news = _NEWS.get(alert.cause, "").format(
        assignee=alert.assignee or "nobody", until=alert.snoozed_until, duplicate_of=alert.duplicate_of
    )
    since = f" since turn {alert.evidence[0].turn}" if alert.evidence else ""
    said = f"{news}{who if news else f'S{who[1:]}'} {_DOES[alert.category]}{since}"
    judged = alert.escalation
    chance = f"score {alert.score:.2f}" if judged is None else f"probability {judged.probability:.2f}"
    turn = worst_turn(alert)
    worst = alert.reason if turn is None else f"worst turn {turn}"
    whose = f"; assigned to {alert.assignee}" if alert.assignee and alert.cause != "assigned" else ""
    return f"{said}; {chance}, {trend(alert)}; {worst}{whose}."


def trend(alert: AlertChanged) -> str:
    """Whether the last turns raised or lowered what is thought of the session: `rising`, `falling` or `steady`."""
    judged = alert.escalation
    if judged is None:
        step, least = alert.slope.per_turn, _LEAST_SLOPE
    else:
        step, least = sum(share.log_odds for share in judged.turns[-_LATEST:]), _LEAST_STEP
    return "rising" if step >= least else "falling" if step <= -least else "steady"


def worst_turn(alert: AlertChanged) -> int | None:
    """The turn that adds most, by log-odds where a model judges, else by risk; None without evidence."""
    by_risk = alert.escalation is None
    worst = max(alert.evidence, key=lambda each: each.risk if by_risk else each.log_odds, default=None)
    return None if worst is None else worst.turn


def grounds(alert: AlertChanged) -> list[str]:
    """Why: reason, the strongest signals with their log-odds, what had to be otherwise, and by which rules."""
    judged = alert.escalation
    said = (
        []
        if judged is None
        else [
            f"begins at {judged.base_log_odds:+.1f}",
            *map(contribution_words, strongest(judged.contributions, _MOST_GROUNDS)),
            counterfactual(judged),
            f"model {judged.model}",
        ]
    )
    return [alert.reason, *said, f"policy {policy_words(alert)}", f"alert {alert.alert_id}"]


def strongest(contributions: Sequence[Contribution], most: int | None = None) -> list[Contribution]:
    """The largest contributions (None: all), whether they raise or lower the probability."""
    return sorted(contributions, key=lambda each: -abs(each.log_odds))[:most]


def contribution_words(contribution: Contribution) -> str:
    """Render what a signal adds in log-odds, and the outcome without it.

    >>> contribution_words(Contribution("level", 0.6, 4.13, 0.214, False))
    'level +4.1 (without it 0.21, no alert)'
    """
    without = f"{contribution.probability_without:.2f}, {outcome(contribution)}"
    return f"{_name(contribution)} {contribution.log_odds:+.1f} (without it {without})"


def counterfactual(escalation: Escalation) -> str:
    """Render the smallest change without which there would be no alert, as one sentence."""
    raising = [each for each in strongest(escalation.contributions) if each.log_odds > 0]
    if not raising:
        return "No signal raises it."
    decisive = [each for each in raising if not each.alert_without]
    if decisive and escalation.probability >= escalation.threshold:
        further = [f", without {_name(each)} {each.probability_without:.2f}" for each in decisive[1:]]
        first = decisive[0]
        return f"Without {_name(first)} it would be {first.probability_without:.2f}{''.join(further)}: no alert."
    first = raising[0]
    return (
        f"Without {_name(first)}, the strongest signal, it would be {first.probability_without:.2f}: {outcome(first)}."
    )


def policy_words(alert: AlertChanged) -> str:
    """Render version and, where it is known, digest of the policy that judged."""
    return alert.policy_version + (f" ({alert.policy_digest})" if alert.policy_digest else "")


def outcome(contribution: Contribution) -> str:
    """Render the outcome without this signal."""
    return "still an alert" if contribution.alert_without else "no alert"


def _name(contribution: Contribution) -> str:
    return contribution.signal.replace("_", " ")
