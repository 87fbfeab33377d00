"""Metrics of risk: alerts, modes, and turns that no scorer can read. Part of `models.metrics`, which has the whole."""

from __future__ import annotations

from models.metrics.metric import counter, gauge

RISK_METRICS = (
    counter(
        "alerts_total",
        "alerts",
        "severity",
        "cause",
        means="Alert changes written to the topic.",
        do="A jump in raised alerts: compare with a backtest before believing it.",
    ),
    counter(
        "mode_transitions_total",
        "transitions",
        "mode",
        means="Sessions that entered each risk mode.",
        do="To and fro between two modes: widen the policy's hysteresis.",
    ),
    gauge(
        "open_sessions",
        "sessions",
        "mode",
        "partition",
        means="Sessions that are open now, by risk mode.",
        do="Many more in a high mode than yesterday: read the alerts of that time, or a producer sends tests. Growing "
        "without end: sessions are not closed, check time-out and watermark.",
    ),
    counter(
        "turns_not_english_total",
        "turns",
        means="Scored turns whose words are hardly English: another language, or spelt beyond recognition. Their risk "
        "stays near that of a text that says nothing.",
        do="A large share of turns_folded_total: those conversations go unwatched, let a judge or the producers' own "
        "risks watch them.",
    ),
    counter(
        "risks_not_a_number_total",
        "turns",
        means="Turns for which the scorer gave no number; the rules' risk took its place.",
        do="Any: the scorer or its file is broken, replace it.",
    ),
)
