"""The report's part about alerts: the probability against its threshold, and what each signal and turn added to it."""

from __future__ import annotations

import math
from collections.abc import Collection
from html import escape
from itertools import accumulate

from jobs.demo.state import AlertSeen, DemoState
from models.events import AlertChanged, Contribution, Escalation
from streams.notify.wording import counterfactual, outcome, policy_words, strongest

_WIDTH, _HEIGHT = 400.0, 120.0
_LEFT, _TOP, _BOTTOM = 26.0, 8.0, 14.0
_BAR_WIDTH = 5.0
_INSET = 9.0
"""From the ends of the axis to the first and the last turn: half of a number's width."""
_LEAST_TOLD = 0.05
"""Log-odds; what a signal adds below it is told with the rest."""


def alerts_html(state: DemoState) -> str:
    """One article for each alert; every text in it is escaped."""
    return "".join(_alert(alert, state) for alert in state.alerts.values()) or "<p>None.</p>"


def share_curve(escalation: Escalation, evidence: Collection[int], session_id: str) -> str:
    """Log-odds after each turn as a line, what each turn added as bars from zero, and the threshold, as SVG.

    The line begins at the base with what earlier turns added, and ends at the alert's log-odds. The horizontal axis is
    the turn number.

    Args:
        escalation: Of an alert.
        evidence: Turns to mark.
        session_id: Of the alert.
    """
    shares = escalation.turns
    line = list(
        accumulate((s.log_odds for s in shares), initial=escalation.base_log_odds + escalation.earlier_log_odds)
    )
    alert_from = _log_odds(escalation.threshold)
    heights = [0.0, alert_from, *line, *(share.log_odds for share in shares)]
    least, most = min(heights), max(heights)
    turns = [share.turn for share in shares] or [0]
    first, last = min(turns), max(turns)

    def x(turn: float) -> float:
        return _LEFT + _INSET + (turn - first) / max(last - first, 1) * (_WIDTH - _LEFT - 2 * _INSET)

    def y(log_odds: float) -> float:
        return _TOP + (most - log_odds) / ((most - least) or 1.0) * (_HEIGHT - _TOP - _BOTTOM)

    drawn = [
        f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH}" y1="{y(0):.1f}" y2="{y(0):.1f}"/>',
        f'<line class="threshold" x1="{_LEFT}" x2="{_WIDTH}" y1="{y(alert_from):.1f}" y2="{y(alert_from):.1f}"/>',
        *(f'<text x="0" y="{y(value) + 3:.1f}">{value:+.1f}</text>' for value in sorted({least, most})),
        *(
            f'<text text-anchor="middle" x="{x(turn):.1f}" y="{_HEIGHT - 2}">{turn}</text>'
            for turn in sorted({first, last})
        ),
    ]
    for share in shares:
        top, bottom = sorted((y(share.log_odds), y(0)))
        kind = "evidence" if share.turn in evidence else "risk"
        drawn.append(
            f'<rect class="{kind}" x="{x(share.turn) - _BAR_WIDTH / 2:.1f}" y="{top:.1f}" width="{_BAR_WIDTH}" '
            f'height="{max(bottom - top, 1.0):.1f}"><title>turn {share.turn}: {share.log_odds:+.2f}</title></rect>'
        )
    reached = zip([_LEFT, *(x(share.turn) for share in shares)], line, strict=True)
    points = " ".join(f"{at:.1f},{y(log_odds):.1f}" for at, log_odds in reached)
    drawn.append(f'<polyline class="score" points="{points}"/>')
    label = escape(f"What each turn of session {session_id} added", quote=True)
    box = f'viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}"'
    return f'<svg class="shares" {box} role="img" aria-label="{label}">{"".join(drawn)}</svg>'


def _log_odds(probability: float) -> float:
    bounded = min(max(probability, 1e-6), 1 - 1e-6)
    return math.log(bounded / (1 - bounded))


def _alert(alert: AlertSeen, state: DemoState) -> str:
    change, of = alert.gravest, state.sessions[alert.latest.session_id].conversation
    quotes = "".join(
        f"<blockquote>“{escape(next(iter(of.turns[e.turn].values())))}”<br>"
        f"<small>turn {e.turn}: {escape(e.why)}{f', {e.log_odds:+.2f}' if change.escalation else ''}</small>"
        "</blockquote>"
        for e in change.evidence
    )
    return (
        f'<article class="alerted"><span class="chip {change.severity}">{change.severity}</span>'
        f"<h3>{escape(of.title)}</h3>"
        f"<p class=faint>raised at turn {alert.raised.turn} of {len(of.turns)} · {escape(', '.join(alert.causes))}</p>"
        f"{_shares(change) if change.escalation is None else _judgement(change, change.escalation)}{quotes}</article>"
    )


def _shares(change: AlertChanged) -> str:
    """Where no model judges."""
    shares = ", ".join(
        f"{signal.name.replace('_', ' ')} {signal.share:.0%}"
        for signal in sorted(change.signals, key=lambda signal: -signal.share)
        if signal.share > 0
    )
    return f"<p>{escape(change.reason)}</p><p class=faint>score {change.score:.2f} · {escape(shares)}</p>"


def _judgement(change: AlertChanged, escalation: Escalation) -> str:
    probability, threshold = escalation.probability, escalation.threshold
    evidence = {turn.turn for turn in change.evidence}
    return (
        f'<div class="meter" role="img" aria-label="probability {probability:.2f}, alert from {threshold:.2f}">'
        f'<i style="width:{probability:.1%}"></i><b style="left:{threshold:.1%}"></b></div>'
        f"<p><strong>Probability {probability:.2f}</strong> at turn {change.turn}, alert from {threshold:.2f}. "
        f"{escape(counterfactual(escalation))}</p>"
        f"{_contributions(escalation)}"
        f"<p class=faint>What each turn added (bars, evidence marked) and the log-odds after it (line); dashed: where "
        f"the alert begins.</p>{share_curve(escalation, evidence, change.session_id)}"
        f"<p class=faint>model {escape(escalation.model)} · policy {escape(policy_words(change))}</p>"
    )


def _contributions(escalation: Escalation) -> str:
    """A row for each signal that says something, then the rest, so that the column adds up."""
    ordered = strongest(escalation.contributions)
    told = [each for each in ordered if abs(each.log_odds) >= _LEAST_TOLD]
    rest = ordered[len(told) :]
    widest = max((abs(each.log_odds) for each in told), default=1.0)
    rows = "".join(_contribution(each, widest) for each in told)
    if rest:
        added = sum(each.log_odds for each in rest)
        rows += f"<tr><td>{len(rest)} more</td><td></td><td>{added:+.2f}</td><td></td></tr>"
    return (
        '<table class="adds"><tr><th>signal</th><th></th><th>log-odds</th><th>without it</th></tr>'
        f"{rows}<tr><td>of any session</td><td></td><td>{escalation.base_log_odds:+.2f}</td><td></td></tr>"
        f"<tr><td>together</td><td></td><td>{escalation.log_odds:+.2f}</td><td></td></tr></table>"
    )


def _contribution(each: Contribution, widest: float) -> str:
    kind = "raises" if each.log_odds > 0 else "lowers"
    return (
        f"<tr><td>{escape(each.signal.replace('_', ' '))}<br><small>{escape(each.why)}</small></td>"
        f'<td class="bar"><i class="{kind}" style="width:{abs(each.log_odds) / widest:.1%}"></i></td>'
        f"<td>{each.log_odds:+.2f}</td><td>{each.probability_without:.2f}, {outcome(each)}</td></tr>"
    )
