"""Metrics of risk: alerts, modes, turns that no scorer can read, and the judge. Part of `models.metrics`."""

from __future__ import annotations

from models.metrics.metric import counter, gauge, histogram

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

JUDGE_METRICS = (
    counter(
        "judgements_total",
        "judgements",
        "result",
        means="Requests to the judge: `answered`; `timeout`, `unavailable`, `rubbish` or `no_text` where it had no "
        "answer; `superseded` by a later one of the session, or `expired`: passed over, nobody waits for it any more.",
        do="Hardly any answered: `turntide doctor` tries the judge. Many expired: it is too slow, raise judge.at_once "
        "or add workers. Alerts stand without it.",
    ),
    histogram(
        "judgement_seconds",
        "seconds",
        means="Time that one judgement took, also in vain.",
        do="Near judge.timeout: the judge is overloaded, or too large for this machine.",
        buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    ),
)
