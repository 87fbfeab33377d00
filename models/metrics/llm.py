"""Metrics of calls to models behind an API, and what they cost. Part of `models.metrics`, which has the whole."""

from __future__ import annotations

from models.metrics.metric import counter, histogram

LLM_METRICS = (
    counter(
        "llm_calls_total",
        "calls",
        "service",
        "result",
        means="Calls to a language model by what they are for (llm, judge): `answered`, `timeout` or `unavailable`. "
        "Tries of one call are one; whether an answer was of use say requests_answered_total and judgements_total.",
        do="Hardly any answered: `turntide doctor` tries the model. Work goes on without: extractive summaries, "
        "alerts without a judgement.",
    ),
    histogram(
        "llm_call_seconds",
        "seconds",
        "service",
        means="Time of one call with all its tries, also in vain.",
        do="Near the time-out: the server is overloaded, or the model too large for it.",
        buckets=(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0),
    ),
    counter(
        "llm_tokens_total",
        "tokens",
        "service",
        "direction",
        means="Tokens that the server counted: `in` for prompts, `out` for answers. Servers that count none add none.",
        do="A jump without more turns: prompts grew, or requests come again; look at llm_calls_total.",
    ),
    counter(
        "llm_cost_total",
        "units of money",
        "service",
        means="What these tokens cost by telemetry.price_in_per_million and price_out_per_million; 0 until those are "
        "set.",
        do="Over budget: lower apps.energy in the policy, name a smaller model, or none.",
    ),
)
