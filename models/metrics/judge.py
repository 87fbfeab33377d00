"""Metrics of the judge role. Part of `models.metrics`, which has the whole."""

from __future__ import annotations

from models.metrics.metric import counter, histogram

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
