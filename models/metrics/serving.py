"""Metrics of requests: what is read over HTTP, and calls to models behind an API. Part of `models.metrics`."""

from __future__ import annotations

from models.metrics.metric import counter, gauge, histogram

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

SERVING_METRICS = (
    counter(
        "contexts_total",
        "prompts",
        "result",
        means="Prompts put together for which memories of the app were wanted: `with_memories` or `without`; the first "
        "by both is the injection rate (app memory).",
        do="Nearly all without: conversations end without anything to remember, or callers name another app than "
        "producers do.",
    ),
    counter(
        "http_requests_total",
        "requests",
        "route",
        "status",
        means="Requests by the template of their route and the class of the answer (2xx to 5xx). What fits no route is "
        "`other`, and so is what was refused before a route was looked for.",
        do="5xx: read the log. 4xx on one route: a client is wrong or has no right. 4xx of `other`: limits or tokens.",
    ),
    histogram(
        "http_request_seconds",
        "seconds",
        "route",
        means="Time from a request to the end of its answer; streams are left out.",
        do="One route grew: its store is slow. All grew: the process lacks CPU, look at stage_seconds.",
        buckets=_SECONDS,
    ),
    gauge(
        "live_streams",
        "streams",
        means="Browsers that watch the live page now.",
        do="At the limit: more are refused; raise it in the settings, or close tabs.",
    ),
    counter(
        "live_stream_drops_total",
        "streams",
        means="Live streams that the server ended or refused: too slow a reader, or too many of them.",
        do="Rising: readers that do not read, or a limit that is too low. Sessions and alerts are not affected.",
    ),
    counter(
        "audit_records_total",
        "records",
        "result",
        means="Records of who read text or acted: `written`, or `lost`.",
        do="Lost: the broker does not take them. Where http.audit_required is set, text is refused meanwhile.",
    ),
    counter(
        "http_refused_total",
        "requests",
        "reason",
        means="Requests refused before their route: `rate` (too many of a caller), `failed_tokens` (too many wrong "
        "ones of an address), `secret_in_url`; and connections: `slow_head`, `connections` (too many).",
        do="rate: a caller asks too often, or http.requests_per_second is too low. failed_tokens, slow_head, "
        "connections: somebody tries; look at the addresses in front. secret_in_url: a client is wrong.",
    ),
)

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
