"""Who is waited for: whichever generation of the index is at work, and sinks of alerts that are away."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from models.events.topics import ALERTS, TURNS
from streams.erase.readers import Readers, ReadersBehind
from streams.settings import Settings

SETTINGS = Settings()
PREFIX = SETTINGS.topic_prefix
TURN = TopicPartition(TURNS.full_name(PREFIX), 0)
ALERT = TopicPartition(ALERTS.full_name(PREFIX), 0)
OLD, NEW = "index", "index-minilm"


class Groups:
    """An admin client that knows groups by what they have committed, and which of them have members."""

    def __init__(self, committed: Mapping[str, Mapping[TopicPartition, int]], at_work: set[str]) -> None:
        self._committed = {f"{PREFIX}.{name}": offsets for name, offsets in committed.items()}
        self._at_work = {f"{PREFIX}.{name}" for name in at_work}

    async def list_consumer_groups(self) -> list[tuple[str, str]]:
        """All of them."""
        return [(name, "consumer") for name in sorted({*self._committed, *self._at_work})]

    async def list_consumer_group_offsets(self, group: str) -> dict[TopicPartition, Any]:
        """Of one."""
        offsets = self._committed.get(group, {})
        return {place: SimpleNamespace(offset=offset) for place, offset in offsets.items()}

    async def describe_consumer_groups(self, groups: list[str]) -> list[Any]:
        """One group in a request."""
        (name,) = groups
        members = ["a worker"] if name in self._at_work else []
        state = "Stable" if members else "Empty" if name in self._committed else "Dead"
        return [SimpleNamespace(groups=[(0, name, state, "consumer", "", members)])]


def readers(committed: Mapping[str, Mapping[TopicPartition, int]], at_work: set[str] | None = None) -> Readers:
    """Readers that wait no time at all."""

    async def holds_records(_extents: Any) -> bool:
        return True

    async def landed() -> dict[TopicPartition, int]:
        return {}

    logs: Any = SimpleNamespace(
        settings=SETTINGS, admin=Groups(committed, at_work or set()), holds_records=holds_records
    )
    return Readers(logs, landed, within=timedelta(0))


@pytest.mark.parametrize("old", [{}, {OLD: {TURN: 50}}], ids=["expired", "behind"])
async def test_the_generation_at_work_is_the_index(old: dict[str, dict[TopicPartition, int]]) -> None:
    """The archive's settings name one that nobody works for any more."""
    waiting = readers({**old, NEW: {TURN: 100}}, {NEW})
    await waiting.beyond("index", {TURN: 100})

    assert await waiting.works_here("index")
    with pytest.raises(ReadersBehind, match=f"{NEW} has not read 1 records"):
        await waiting.beyond("index", {TURN: 101})
    with pytest.raises(ReadersBehind, match=f"{NEW} has not read 1 records"):
        await waiting.all_beyond({TURN: 101}, roles=["index"])


async def test_all_generations_at_work_are_waited_for() -> None:
    """Readers move over one by one; another group that begins alike is none of them."""
    waiting = readers({OLD: {TURN: 9}, NEW: {TURN: 8}, "indexer": {TURN: 1}}, {OLD, NEW, "indexer"})
    await waiting.beyond("index", {TURN: 8})
    with pytest.raises(ReadersBehind, match=NEW):
        await waiting.beyond("index", {TURN: 9})


async def test_an_index_that_is_away_is_waited_for() -> None:
    """The one that the settings name has read something once."""
    with pytest.raises(ReadersBehind, match=rf"\.{OLD} has not read 1 records"):
        await readers({OLD: {TURN: 8}}).beyond("index", {TURN: 9})


@pytest.mark.parametrize(("group", "waited_for"), [("notify.webhook", True), ("dashboards", False)])
async def test_a_sink_that_is_away_keeps_the_logs(group: str, *, waited_for: bool) -> None:
    """It has alerts still to deliver; a stranger's reader is waited for only while it is at work."""
    waiting = readers({group: {ALERT: 5}})
    if not waited_for:
        await waiting.all_beyond({ALERT: 100}, roles=["sessions"])
        return
    with pytest.raises(ReadersBehind, match=f"{group} has not read 95 records"):
        await waiting.all_beyond({ALERT: 100}, roles=["sessions"])


async def test_a_reader_at_work_is_waited_for_but_not_the_archives_group() -> None:
    """Whosoever it is; of the archive its catalog counts, and its commits are for those who watch the lag."""
    with pytest.raises(ReadersBehind, match="dashboards has not read 95 records"):
        await readers({"dashboards": {ALERT: 5}}, {"dashboards"}).all_beyond({ALERT: 100}, roles=[])

    await readers({"archive": {ALERT: 5}}, {"archive"}).all_beyond({ALERT: 100}, roles=[])


async def test_an_offset_that_is_none_is_no_sign_of_a_worker() -> None:
    """Kafka gives -1 for a partition of which nothing was committed."""
    assert not await readers({"index": {TURN: -1}}).works_here("index")
