"""A judgement in words, the same wherever an alert is told. Names, numbers and turns; never a turn's text."""

from collections.abc import Sequence

from models.events import AlertChanged, Contribution, Escalation


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
