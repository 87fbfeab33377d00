"""Sessions and their risk: modes, alerts, what the scorer and the judge say, conversation topics."""

from __future__ import annotations

from jobs.monitoring.board import WINDOW, Board, Panel, Query, Row, quantile, rate, total

_RISK = Row(
    "Risk",
    (
        Panel(title="Open sessions by mode", queries=(Query(total("open_sessions", "mode"), "{{mode}}"),)),
        Panel(
            title="Sessions that enter a mode, a second",
            queries=(Query(rate("mode_transitions_total", "mode"), "{{mode}}"),),
            unit="ops",
        ),
        Panel(
            title="Alert changes, a second",
            queries=(Query(rate("alerts_total", "cause", "severity"), "{{cause}} {{severity}}"),),
            unit="ops",
            alerts=("TurntideAlertStorm", "TurntideAlertSilence"),
        ),
        Panel(
            title="Share of turns that are hardly English",
            queries=(
                Query(f"{rate('turns_not_english_total', 'job')} / {rate('turns_folded_total', 'job')}", "{{job}}"),
            ),
            unit="percentunit",
        ),
        Panel(
            title="Turns for which the scorer gave no number, a second",
            queries=(Query(rate("risks_not_a_number_total", "job"), "{{job}}"),),
            unit="ops",
            alerts=("TurntideScorerNotANumber",),
        ),
    ),
)

_JUDGE = Row(
    "Judge",
    (
        Panel(
            title="Judgements, a second",
            queries=(Query(rate("judgements_total", "result"), "{{result}}"),),
            unit="ops",
            alerts=("TurntideJudgeFailing",),
            width=12,
        ),
        Panel(
            title="Time of a judgement",
            queries=tuple(Query(quantile(share, "judgement_seconds"), f"p{share * 100:g}") for share in (0.5, 0.99)),
            unit="s",
            width=12,
        ),
    ),
)

_TOPICS = Row(
    "Conversation topics",
    (
        Panel(
            title="Changes of topics, a second",
            queries=(Query(rate("topic_changes_total", "cause"), "{{cause}}"),),
            unit="ops",
            width=12,
        ),
        Panel(
            title="Packed size by original size",
            queries=(
                Query(
                    f"sum(rate(turntide_topic_packed_bytes_total[{WINDOW}]))"
                    f" / sum(rate(turntide_topic_history_bytes_total[{WINDOW}]))",
                    "ratio",
                ),
            ),
            unit="percentunit",
            width=12,
        ),
    ),
)

SESSIONS = Board(
    uid="turntide-sessions",
    title="Turntide: sessions and risk",
    description="What is going on in conversations, and whether its judgement can be trusted.",
    rows=(_RISK, _JUDGE, _TOPICS),
)
