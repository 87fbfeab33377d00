"""The report that the demo leaves behind: one HTML file, nothing loaded from anywhere, for light and dark screens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from html import escape
from importlib.resources import files
from string import Template

from jobs.demo.printed import user_figures
from jobs.demo.report_alerts import alerts_html
from jobs.demo.report_apps import apps_html
from jobs.demo.report_projects import projects_html
from jobs.demo.report_users import users_html
from jobs.demo.state import AlertSeen, DemoState, SessionSeen
from jobs.demo.summary import TOPIC_LIFE, Summary
from jobs.demo.timeline import topic_timeline
from models.policy import ModePolicy

_WIDTH, _HEIGHT = 320.0, 96.0
_LEFT, _TOP, _BOTTOM = 20.0, 6.0, 14.0
_BAR_WIDTH = 3.0
_LEAST_BAR = 1.0
"""A risk of zero is still a turn that was scored."""


def render_report(
    state: DemoState, summary: Summary, *, modes: ModePolicy, further: Sequence[tuple[str, str]], made_at: datetime
) -> str:
    """The report as HTML; every text in it is escaped.

    Args:
        state: All sessions and alerts.
        summary: The verdict and the figures.
        modes: Where the dashed lines are drawn.
        further: What else to look at: what for, and the command.
        made_at: The time, aware.
    """
    verdict = (
        "Exactly the expected sessions alerted, in time, and memory answered as it should."
        if summary.as_expected
        else "; ".join(summary.problems)
    )
    ordered = sorted(state.sessions.values(), key=lambda s: state.alert_of(s.conversation.session_id) is None)
    return Template((files("jobs.demo") / "report.html").read_text("utf-8")).substitute(
        made_at=f"{made_at:%Y-%m-%d %H:%M} UTC",
        verdict=escape(verdict),
        verdict_class="good" if summary.as_expected else "bad",
        figures="".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in _figures(summary)),
        alerts=alerts_html(state),
        sessions="".join(_session(s, state.alert_of(s.conversation.session_id), modes) for s in ordered),
        topics="".join(_topics(state, summary, session_id) for session_id in summary.topics.shown_by),
        users=users_html(state.users, summary),
        apps=apps_html(state, summary),
        projects=projects_html(state.projects, summary.project),
        remembered="".join(
            f"<p class=faint>{escape(what)}: {escape(said)}</p>" for what, said in user_figures(summary.users).items()
        ),
        further="".join(f"<p>{escape(what)}</p><pre>{escape(command)}</pre>" for what, command in further),
    )


def risk_curve(session: SessionSeen, alert: AlertSeen | None, modes: ModePolicy) -> str:
    """Risk of each turn, the session's score, thresholds and the alert, as SVG.

    The horizontal axis is the turn number, the vertical one 0-1.
    """
    turns = max(len(session.conversation.turns) - 1, 1)
    evidence = {e.turn for e in alert.gravest.evidence} if alert else set()

    def x(turn: float) -> float:
        return _LEFT + turn / turns * (_WIDTH - _LEFT - _BAR_WIDTH)

    def y(value: float) -> float:
        return _TOP + (1 - value) * (_HEIGHT - _TOP - _BOTTOM)

    points = [session.points[turn] for turn in sorted(session.points)]
    drawn = [
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH}" y1="{y(t):.1f}" y2="{y(t):.1f}"/>'
        for t in (modes.watch.enter, modes.elevated.enter, modes.critical.enter)
    ]
    drawn.append(f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH}" y1="{y(0)}" y2="{y(0)}"/>')
    drawn += [f'<text x="0" y="{y(value) + 3:.1f}">{value:g}</text>' for value in (0, 0.5, 1)]
    drawn += [f'<text x="{x(turn) - 4:.1f}" y="{_HEIGHT - 2}">{turn}</text>' for turn in (0, turns)]
    for point in points:
        kind, height = ("evidence" if point.turn in evidence else "risk"), max(_LEAST_BAR, y(0) - y(point.risk))
        drawn.append(
            f'<rect class="{kind}" x="{x(point.turn):.1f}" y="{y(0) - height:.1f}" width="{_BAR_WIDTH}" '
            f'height="{height:.1f}"><title>turn {point.turn}: risk {point.risk:.2f}, score {point.score:.2f}, '
            f"{point.mode}</title></rect>"
        )
    line = " ".join(f"{x(p.turn) + _BAR_WIDTH / 2:.1f},{y(p.score):.1f}" for p in points)
    drawn.append(f'<polyline class="score" points="{line}"/>')
    if alert:
        at = x(alert.raised.turn) + _BAR_WIDTH / 2
        drawn.append(
            f'<line class="mark" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{y(0)}"/>'
            f'<path class="flag" d="M{at:.1f} {_TOP} l9 4 l-9 4 z">'
            f"<title>raised at turn {alert.raised.turn}</title></path>"
        )
    label = escape(f"Risk and score of session {session.conversation.session_id}", quote=True)
    return f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{label}">{"".join(drawn)}</svg>'


def _figures(summary: Summary) -> list[tuple[str, str]]:
    archive = summary.archive
    latencies = [alert.latency_ms for alert in summary.alerts if alert.latency_ms is not None]
    return [
        ("turns", f"{summary.turns}"),
        ("sessions", f"{summary.sessions}"),
        ("segments compacted", f"{summary.segments}"),
        ("episodes closed", f"{summary.episodes}"),
        ("topics started", f"{summary.topics.started}"),
        ("topics packed", f"{summary.topics.compacted}"),
        ("topics unpacked", f"{summary.topics.unpacked}"),
        ("topics evicted", f"{summary.topics.evicted}"),
        ("facts of users", f"{sum(summary.users.facts.values())}"),
        ("episodes of users", f"{summary.users.episodes}"),
        ("memories of apps", f"{sum(summary.apps.memories.values())}"),
        ("turns : summaries", f"{summary.users.turns_to_summaries_ratio or '–'}"),
        ("memories of a project", f"{sum(summary.project.memories.values())}"),
        ("alerts", f"{len(summary.alerts)}"),
        ("turn → alert", f"{max(latencies):.0f} ms at most" if latencies else "–"),
        ("archive rows", f"{archive.rows:,}"),
        ("JSON : Parquet", f"{archive.json_to_parquet_ratio or '–'}"),
    ]


def _topics(state: DemoState, summary: Summary, session_id: str) -> str:
    session, counts = state.sessions[session_id], summary.topics.shown_by[session_id]
    told = ", ".join(f"{counts.get(cause, 0)} {cause}" for cause in TOPIC_LIFE)
    return (
        f"<article><h3>{escape(session.conversation.title)}</h3><small>{escape(session_id)} · {escape(told)} · "
        f"{escape(summary.topics.clock)}</small>{topic_timeline(session_id, session.topics)}</article>"
    )


def _session(session: SessionSeen, alert: AlertSeen | None, modes: ModePolicy) -> str:
    of, episode = session.conversation, session.episode
    ended = "still open" if episode is None else f"episode closed: {episode.reason}"
    about = f"<small>{escape(', '.join(episode.key_topics))}</small>" if episode else ""
    return (
        f'<article{" class=alerted" if alert else ""}><span class="chip {session.mode}">{session.mode}</span>'
        f"<h3>{escape(of.title)}</h3><small>{escape(of.session_id)} · {escape(of.app_id)} · {session.turns} turns · "
        f"{session.segments} segments · {escape(ended)}</small>{risk_curve(session, alert, modes)}{about}</article>"
    )
