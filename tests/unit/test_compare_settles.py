"""A comparison that takes long is not deceived by a log that moves meanwhile."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from unittest.mock import AsyncMock

import pytest

from jobs.replay import comparison as compare
from jobs.replay.comparison import State, settle
from jobs.replay.index_read import NobodyToAsk
from jobs.shared.role_groups import RoleGroup
from models.events.topics import Topic
from streams.oracle.comparison import Comparison, DifferenceKind, TopicOutputs
from streams.oracle.replay import Folded, Replayed
from streams.settings import Settings, load_settings

NOTHING = Replayed({}, {}, 0, set())


def differing(found: int) -> Comparison:
    """So many differences in the archive."""
    result = Comparison()
    result.add("archive windows.v1", DifferenceKind.FALSE, [str(n) for n in range(found)])
    return result


class Cluster:
    """What the roles left: ends of each log as they are asked for, of which the last stays."""

    def __init__(self) -> None:
        self.ends: dict[str, list[int]] = {"turns.v1": [7], "commands.v1": [7]}

    async def extent(self, _settings: Settings, topic: Topic) -> dict[int, tuple[int, int]]:
        """First and next offset."""
        ends = self.ends[topic.name]
        return {0: (0, ends.pop(0) if len(ends) > 1 else ends[0])}

    async def groups(self, _settings: Settings, roles: list[str]) -> dict[str, RoleGroup]:
        """All of them have run here."""
        return dict.fromkeys(roles, RoleGroup("Stable", 1))

    async def fold(self, _settings: Settings, _replay: object, **_options: object) -> Replayed:
        """The oracle of a log."""
        return NOTHING

    async def changelog(self, _settings: Settings, _folded: Folded) -> Callable[[], Awaitable[State]]:
        """State is as the oracle has it."""
        return AsyncMock(return_value={})


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Everything but the archive is as the oracles have it."""
    cluster = Cluster()

    async def outputs(_settings: Settings, _before: object) -> dict[str, TopicOutputs]:
        return {}

    async def since(_settings: Settings, topic: Topic, ends: Mapping[int, int]) -> dict[str, int]:
        return {f"{topic.name}[{number}] clock_ticked": 2 for number in ends}

    async def nobody(*_args: Any, **_options: Any) -> Any:
        raise NobodyToAsk("nobody answers")

    monkeypatch.setattr(compare, "log_extent", cluster.extent)
    monkeypatch.setattr(compare, "role_groups", cluster.groups)
    monkeypatch.setattr(compare, "feed_log", cluster.fold)
    monkeypatch.setattr(compare, "changelog_reader", cluster.changelog)
    monkeypatch.setattr(compare, "stream_embedder_of", lambda _: None)
    monkeypatch.setattr(compare, "ruled_sessions", lambda *_: None)
    monkeypatch.setattr(compare, "compare_outputs", lambda *_: Comparison())
    monkeypatch.setattr(compare, "compare_tiers", lambda *_: Comparison())
    monkeypatch.setattr(compare, "read_outputs", outputs)
    monkeypatch.setattr(compare, "names_since", since)
    monkeypatch.setattr(compare, "read_index", nobody)
    monkeypatch.setattr(compare, "read_users", nobody)
    monkeypatch.setattr(compare, "read_projects", nobody)
    monkeypatch.setattr(compare, "_POLL_S", 0.0)
    return cluster


def archive(monkeypatch: pytest.MonkeyPatch, *found: int) -> list[int]:
    """What the archive differs in, each time that it is looked at; the last one stays."""
    left = list(found)
    monkeypatch.setattr(compare, "_archive_compared", lambda *_: differing(left.pop(0) if len(left) > 1 else left[0]))
    return left


MOVING = [*range(1, 100_000)]


@pytest.mark.parametrize(
    ("ends", "found", "within_s", "counts"),
    [
        ({"turns.v1": [5, 6]}, [3, 0], 30, {}),
        ({}, [3], 0.05, {"archive windows.v1 false": 3}),
        ({"turns.v1": MOVING}, [3], 0.05, {}),
        ({"commands.v1": MOVING}, [3], 0.05, {}),
        ({"turns.v1": MOVING}, [0], 30, {}),
    ],
    ids=["went on", "stands", "never rests", "commands never rest", "followers keep up"],
)
async def test_what_differs_differs_once_the_log_rests(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, ends: dict[str, list[int]], found: list[int],
    *, within_s: float, counts: dict[str, int],
) -> None:  # fmt: skip
    """A log that went on is compared anew; one that never rests is said, of a follower that is further on alone."""
    cluster.ends |= {log: list(each) for log, each in ends.items()}
    archive(monkeypatch, *found)
    compared = (await settle(load_settings(), within_s=within_s)).comparison
    grew = [f"grew by 2 {log}[0] clock_ticked" for log, each in ends.items() if each is MOVING and found == [3]]

    assert counts == compared.counts
    assert "state" in compared.checked
    assert all(said in compared.not_checked["archive windows.v1"] for said in grew)
    assert bool(grew) == ("archive windows.v1" in compared.not_checked)
