"""`turntide lab bench memories`: what is measured and which limits hold. Never how fast."""

import pytest

from jobs.lab.bench.measuring import BenchFailed
from jobs.lab.bench.memories import AppMemoryWork, app_of, arrivals_of, measure, share_of_work, walk
from jobs.lab.bench.result import publish
from jobs.shared.output import OutputFormat
from models.events import ConversationEnded
from models.policy import Policy
from models.policy.app import AppPolicy
from tests.support.loaded import loaded_embedder

SHARED = Policy(apps=AppPolicy(spaces=("app",)))
"""Memories of an app, as the bench measures them."""


@pytest.fixture(scope="module")
def ended() -> list[ConversationEnded]:
    """Conversations of the demo that ended."""
    return share_of_work(arrivals_of(1_000, SHARED, loaded_embedder()), SHARED, rounds=1)[1]


@pytest.fixture(scope="module")
def walked(ended: list[ConversationEnded]) -> AppMemoryWork:
    """A hundred ends on each of two apps."""
    return walk(ended, SHARED, apps=2)


def test_each_conversation_that_came_to_its_end_has_ended(ended: list[ConversationEnded]) -> None:
    """None twice, and by its own end rather than a time-out."""
    assert {event.reason for event in ended} == {"ended"}
    assert len({event.session_id for event in ended}) == len(ended) > 5


def test_a_hundred_ends_are_ten_memories(walked: AppMemoryWork) -> None:
    """Beyond the tenth each one is compacted; nobody ever sees eleven, and apps are apart."""
    assert (walked.most, walked.left) == (10, (10, 10))
    assert len(walked.compacted_ms) == len(walked.compactions) == 180
    assert len(walked.created_ms) == 20
    assert {change.app_id for change in walked.memories} == {"bench-app-0", "bench-app-1"}


def test_an_app_in_the_store_has_as_many_memories_as_the_policy_keeps(ended: list[ConversationEnded]) -> None:
    """Made by the fold like all others: each app's first ten conversations, each a memory of its own."""
    made = walk(ended, SHARED, apps=3, ends=10).memories

    assert {(each.app_id, each.memory_id) for each in made} == {(app_of(n), m + 1) for n in range(3) for m in range(10)}
    assert all(change.active and change.content for change in made)


def test_a_policy_without_memories_of_apps_is_named() -> None:
    """There is nothing to measure then."""
    policy = Policy(apps=AppPolicy(enabled=False))

    with pytest.raises(BenchFailed, match=r"apps\.enabled"):
        share_of_work(arrivals_of(200, policy, loaded_embedder()), policy, rounds=1)


@pytest.mark.behaviour("app-25", "app-26")
async def test_everything_is_measured_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """As often as wanted, held to the limits of app memory, in a table of its own."""
    report = await measure(turns=1_000, rounds=1, walked=1, apps=20, asked=5)
    result = publish("memories", OutputFormat.TABLE, lambda **_: report)

    assert [(each["what"], each["count"]) for each in [*report["work"], *report["reading"]]] == [
        ("creation", 10),
        ("creation and compaction", 90),
        ("memories of a space", 5),
        ("the source's context", 5),
        ("hybrid search of a space", 5),
    ]
    assert (report["memories"], report["ends"]["ended"], report["ends"]["left"], report["ends"]["most"]) == (
        200,
        100,
        10,
        10,
    )
    assert report["ends"]["merged"] + report["ends"]["deleted"] == 90
    assert 0 < report["share"]["spaces_percent"] < report["own_words_percent"] < 100
    assert [(figure.what, figure.bound) for figure in result.held_to] == [
        ("creation, p99", 50.0),
        ("creation and compaction, p99", 50.0),
        ("memories of a space, p99", 5.0),
        ("the source's context, p99", 5.0),
        ("memories of an app at any time", 10.0),
        ("spaces' share of the folds", 5.0),
        ("… with words of their own", 5.0),
    ]

    assert [len(table.rows) for table in result.rows] == [2, 3, 1, 1, 1]
    assert "the source's context" in capsys.readouterr().out
