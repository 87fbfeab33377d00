"""What is kept of a session that closed: its episode (seed 000, `archive_session`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from models.policy import Policy
from models.session.segments import Segment
from models.text.summary import Passage, Summary, summarise


def close_episode(segments: Sequence[Segment], repeated_topics: Mapping[str, int], policy: Policy) -> Summary:
    """Summary of a whole session from the summaries of its last segments, with the topics most turns named.

    Args:
        segments: The working memory, oldest first: with defaults the last 50 turns.
        repeated_topics: Topic to turns, of the whole session.
        policy: Sizes.
    """
    memory = policy.memory
    summary = summarise(
        [Passage(segment.summary, segment.risk_mean) for segment in segments],
        sentences=memory.episode_sentences,
        sentence_chars=memory.sentence_chars,
        key_topics=memory.key_topics,
        risky=policy.risk.risky_topics,
    )
    frequent = sorted(repeated_topics, key=lambda topic: -repeated_topics[topic])
    return Summary(summary.text, frequent[: memory.key_topics] or summary.key_topics)
