"""Sessions and their risk: modes, alerts, what the scorer and the judge say, conversation topics."""

from __future__ import annotations

from jobs.operate.monitoring.board import (
    WINDOW,
    MonitoringBoard,
    Panel,
    PanelRow,
    Query,
    per_second,
    quantile,
    rate,
    total,
)

_RISK = PanelRow(
    "Risk",
    (
        Panel(title="Open sessions by mode", queries=(Query(total("open_sessions", "mode"), "{{mode}}"),)),
        per_second("Sessions that enter a mode", "mode_transitions_total", "mode"),
        per_second(
            "Alert changes", "alerts_total", "cause", "severity", alerts=("TurntideAlertStorm", "TurntideAlertSilence")
        ),
        Panel(
            title="Share of turns that are hardly English",
            queries=(
                Query(f"{rate('turns_not_english_total', 'job')} / {rate('turns_folded_total', 'job')}", "{{job}}"),
            ),
            unit="percentunit",
        ),
        per_second(
            "Turns for which the scorer gave no number",
            "risks_not_a_number_total",
            "job",
            alerts=("TurntideScorerNotANumber",),
        ),
    ),
)

_JUDGE = PanelRow(
    "Judge",
    (
        per_second("Judgements", "judgements_total", "result", alerts=("TurntideJudgeFailing",), width=12),
        Panel(
            title="Time of a judgement",
            queries=tuple(Query(quantile(share, "judgement_seconds"), f"p{share * 100:g}") for share in (0.5, 0.99)),
            unit="s",
            width=12,
        ),
    ),
)

_TOPICS = PanelRow(
    "Conversation topics",
    (
        per_second("Changes of topics", "topic_changes_total", "cause", width=12),
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

SESSIONS = MonitoringBoard(
    uid="turntide-sessions",
    title="Turntide: sessions and risk",
    description="What is going on in conversations, and whether its judgement can be trusted.",
    rows=(_RISK, _JUDGE, _TOPICS),
)
