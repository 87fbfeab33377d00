"""Every figure of the sections: what it says, and which way is better. Periods are compared by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import polars as pl

from jobs.analyse.mining.coverage import Coverage, about, part_of
from jobs.analyse.mining.job import Figure

MEANINGS: Mapping[Literal["higher", "lower"] | None, Mapping[str, str]] = {
    None: {
        "sessions": "Sessions that began in the period.",
        "users": "Users of these sessions.",
        "turns": "Turns of these sessions, by users, assistants and tools.",
        "user_turns": "Turns of users among them.",
        "turns_as_json_mb": "Turns as they came, in megabytes.",
        "json_bytes_per_turn": "One turn as it came, in bytes.",
        "alerting_sessions": "Sessions with an alert.",
        "judgements": "Answers of a slower judge to alerts.",
        "llm_memory_answers": "Answers of a language model about memories of apps.",
        "llm_memory_answers_s": "Time that these took, in seconds.",
        "events_per_session": "Changes of mode and topic, and signals that appear, per session.",
        "sessions_with_events_percent": "Sessions in which anything changes.",
        "topic_clusters": "Clusters of topics in the period.",
        "topics_per_session": "Topics of a session, on average.",
        "novel_texts_ratio": "Share of texts far from all topics of the earlier period; 0.05 where nothing changed.",
        "cycling_sessions_ratio": "Share of sessions that come back to a topic at least once.",
        "campaign_sessions": "Sessions in campaigns.",
        "campaign_users": "Users in campaigns.",
        "segments_tokens_kept_ratio": "tokens of summaries to tokens of what they stand for, segments",
        "topics_tokens_kept_ratio": "tokens of summaries to tokens of what they stand for, topics",
        "users_episodes_tokens_kept_ratio": "tokens of summaries to tokens of what they stand for, users' episodes",
        "active_facts": "facts of users that are true now",
        "facts_per_user_median": "active facts of half of the users that have any",
        "facts_per_user_p90": "and of the tenth with most",
        "app_memories_a_space_mean": "memories that an app's space holds; at most ten by the usual policy",
    },
    "higher": {
        "label_precision_ratio": "Labelled alerts that were right, of all labelled ones.",
        "tokens_saved": "Tokens that summaries of segments take out of contexts.",
        "median_turns_to_escalation": "Scored turns until escalation, of sessions that escalate.",
    },
    "lower": {
        "at_risk_ratio": "Sessions with a turn at risk {risk:g} or more, of all.",
        "alerts_per_1000_sessions": "Alerts raised, per 1,000 sessions.",
        "seconds_per_judgement": "Time of the judge for one answer.",
        "dead_letters": "Records that could not be read.",
        "escalated_sessions_percent": "Sessions that reached an escalated mode or alerted.",
        "median_turns_from_change_to_alert": "Scored turns from the first upward change of the risk to the alert, "
        "where the change came first.",
        "rising_sessions_percent": "Sessions whose risk surely rises (interval of its slope).",
        "topic_returns_per_100_turns": "How often sessions come back to a topic that they left.",
        "campaigns": "Groups of nearly equal risky messages in many sessions of many users.",
        "campaign_turns_ratio": "Share of the risky messages compared that belong to a campaign.",
        "topic_loss_median_ratio": "probes that a search for what was said no longer finds in a topic's summary, of "
        "half the sessions",
        "duplicate_facts_ratio": "active facts whose value stands under another key of the same user",
        "stale_facts_ratio": "active facts of which nothing was heard for long",
        "flipping_users_ratio": "users whose facts changed in the period, and changed back",
        "contradicting_app_memories_ratio": "memories of apps that contradict another one",
        "alike_app_memories_pairs": "pairs of memories of one space that say the same in other words",
        "project_memories_never_accessed_ratio": "memories of projects that nobody has asked for yet",
        "project_facts_pending": "facts of projects that wait for somebody to confirm them",
        "shifted_measures": "measures that moved, of {tests} compared (all apps together, and each by itself)",
        "highest_psi": "largest stability index of a measure over all apps; 0.2 and more is a shift",
    },
}
"""Which way is better → name, stable, in snake case, with its unit → what it says."""


def figure(
    name: str,
    value: object,
    whom: pl.DataFrame | Coverage,
    *,
    part: pl.Expr | Coverage | None = None,
    digits: int | None = None,
    **words: float,
) -> Figure:
    """A figure about these rows.

    Args:
        name: One of `MEANINGS`.
        value: A number, or None where there is nothing to tell.
        whom: Rows with `session_id` and `user_id`, or their counts.
        part: Of a share of the rows: the condition that it counts, or whom it tells of.
        digits: Decimals that are kept.
        words: Numbers that its meaning names.
    """
    if isinstance(part, pl.Expr):
        assert isinstance(whom, pl.DataFrame)  # noqa: S101 - a condition is one of rows
        part = part_of(whom, part)
    better = next(better for better, meanings in MEANINGS.items() if name in meanings)
    number = None if value is None else float(value)  # type: ignore[arg-type]
    return Figure(
        name=name,
        value=number if number is None or digits is None else round(number, digits),
        meaning=MEANINGS[better][name].format(**words),
        **(about(whom) if isinstance(whom, pl.DataFrame) else whom),
        better=better,
        part=part,
    )
