"""What becomes of packed topics: unpacked on return without thrashing, merged when alike (§4 and after)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.session_driver import NOON
from tests.support.topic_driver import Talk, between, causes

FIRST = "Message 0 of it."
NEAR = between(0, 1, 0.6)
"""0.55 to matter 0: a topic of its own at 0.7, also with the bonus, and alike at 0.5."""


def long_topic(messages: int = 40, **topics: object) -> Talk:
    """A topic about matter 0, most of its messages packed, that has been left for matter 1."""
    talk = Talk(**topics)
    talk.discuss(0, messages)
    talk.ask(1, "another")
    return talk


@pytest.mark.parametrize("codec", ["gzip", "deflate"])
@pytest.mark.parametrize("restart", [False, True])
def test_return_unpacks_everything(codec: str, restart: bool) -> None:
    """All blocks, merged with what is at hand, by time; the packed history is cleared."""
    talk = long_topic(codec=codec)
    before = [block.messages for block in talk.topics.store.topic(0).packed]
    if restart:
        talk.store()
    left, unpacked = talk.ask(0)
    talk.store()

    assert ([32, 4], "left", "unpacked") == (before, left.cause, unpacked.cause)
    assert ([*range(40), 41], [], 0) == (unpacked.active_turns, unpacked.packed_turns, unpacked.packed_bytes)
    assert [*range(40), 41] == talk.at_hand(FIRST)
    assert [] == talk.active.packed


def test_unpacked_topic_is_compacted_when_due_again() -> None:
    """It may grow by eight, as many as a compaction packs; the ninth message compacts it down to four."""
    talk = long_topic()
    talk.ask(0)
    assert [] == talk.discuss(0, 7)
    (compacted,) = talk.discuss(0, 1)

    assert ("compacted", 4, 45) == (compacted.cause, talk.active.active_messages, talk.active.packed_messages)
    assert compacted.compaction is not None
    assert [*range(36, 40), *range(41, 46)] == compacted.compaction.turns
    assert [*range(40), *range(41, 46)] == compacted.packed_turns


def test_alike_topics_merge_when_one_is_compacted() -> None:
    """The older stays, takes the other in and is the active one; nothing is lost, counts add up."""
    talk = Talk(merge_similarity=0.5)
    talk.discuss(0, 3)
    talk.ask(NEAR, "near")
    for _ in range(11):
        assert [] == talk.answer()
    changes = talk.answer()
    compacted, gone, merged = changes
    talk.store()

    assert (["compacted", "merged", "merged"], "near", "near") == (causes(changes), compacted.title, gone.title)
    assert (False, False, f"into {merged.topic_id}") == (gone.kept, gone.active, gone.detail)
    assert (True, True, f"with {gone.topic_id}") == (merged.kept, merged.active, merged.detail)
    assert ([FIRST], 16, 1) == (talk.titles, merged.message_count, merged.session_topics)
    assert ([0, 1, 2, 12, 13, 14, 15], list(range(3, 12))) == (merged.active_turns, merged.packed_turns)
    assert ({"t0", "ti"}, compacted.summary) == (
        {part for part in talk.stored if part[:2] in {"t0", "t1", "ti"}},
        merged.summary,
    )


def test_merged_topic_has_the_best_of_both() -> None:
    """Earliest creation, latest activity, higher importance, all accesses and tags; the embedding lies between."""
    talk = Talk(merge_similarity=0.5)
    talk.ask(0, metadata={"importance": 0.9})
    talk.ask(0)
    talk.ask(NEAR, "near", metadata={"importance": 0.2})
    for _ in range(12):
        talk.ask(NEAR)
    merged = talk.changes[-1]

    assert ("merged", 0.9, 1 + 12) == (merged.cause, merged.importance, merged.access_count)
    assert (NOON + timedelta(minutes=1), NOON + timedelta(minutes=15)) == (merged.created_at, merged.last_active_at)
    assert [] == talk.ask(between(0, 1, 0.5))


def test_topics_drift_until_they_merge() -> None:
    """With the shipped rules: a topic that step by step comes to the other's matter becomes one with it."""
    talk = Talk(similarity_threshold=0.6)
    talk.discuss(0, 2)
    talk.ask(1, "drifting")
    for step in range(30):
        talk.ask(between(1, 0, min(0.3 + 0.02 * step, 0.6)))

    assert "into" in talk.caused("merged")[0].detail
    assert ("drifting", [FIRST]) == (talk.caused("merged")[0].title, talk.titles)
