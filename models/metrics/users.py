"""Metrics of user memory. Part of `models.metrics`, which has the whole."""

from __future__ import annotations

from models.metrics.metric import counter

USER_METRICS = (
    counter(
        "fact_changes_total",
        "changes",
        "cause",
        means="Changes of facts of users: stored, updated, confirmed, retracted, evicted.",
        do="Updated as often as stored: rules take passing remarks for facts, see `turntide eval facts`.",
    ),
    counter(
        "episodes_total",
        "episodes",
        means="Episodes that turns of users became.",
        do="Flat while turns are folded: the enrich role does not answer, look at its lag.",
    ),
    counter(
        "episode_turn_tokens_total",
        "tokens",
        means="Tokens of the turns that became episodes.",
        do="By episode_tokens_total: how much shorter a context is.",
    ),
    counter(
        "episode_tokens_total",
        "tokens",
        means="Tokens of the summaries that stand for them.",
        do="Near episode_turn_tokens_total: turns are short, lower users.summary_sentences.",
    ),
    counter(
        "requests_answered_total",
        "requests",
        "result",
        means="Requests of the memory role: `answered` as wished; `extractive` (episodes), `empty` (facts) or `failed` "
        "(memories of apps) where the language model failed.",
        do="Hardly any answered while a model is configured: `turntide doctor`, then the log of the enrich role.",
    ),
)
