"""When a partition counts as standing still, by a clock that the test moves."""

import asyncio
import os
from collections.abc import Mapping
from datetime import timedelta
from unittest.mock import AsyncMock, MagicMock

import pytest
from aiokafka import TopicPartition
from faust.types import TP

from models.errors import Stalled
from streams.kafka import watchdog as module
from streams.kafka.transport import BatchConsumer, CommittedConsumerThread
from streams.kafka.watchdog import LogEnds, PartitionProgress, Watchdog, unread_ends, watched
from streams.observe.telemetry import metrics
from tests.support.api_doubles import Clock

LIMIT_S = 120


class Case:
    """A watchdog that is told the same once a second."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.dog = Watchdog(timedelta(seconds=LIMIT_S), clock=self.clock)

    def pass_s(self, seconds: int, places: Mapping[str, PartitionProgress] | None) -> None:
        """Look once a second."""
        for _ in range(seconds):
            self.clock.now_s += 1
            self.dog.look(places)


def test_a_partition_that_does_not_move_though_records_wait_is_a_stall() -> None:
    """Liveness says so from half of the time on, then it is an error that names place, offset and what waits."""
    case, still = Case(), {"t-3": PartitionProgress(17, 20), "t-4": PartitionProgress(5, 5)}
    case.pass_s(LIMIT_S // 2, still)
    alive_before = case.dog.alive()
    case.pass_s(1, still)

    assert alive_before == (True, "ok")
    assert case.dog.alive() == (False, "t-3 stands at offset 17 for 60 s, 3 records wait")
    with pytest.raises(Stalled, match="t-3 stands at offset 17 for 120 s, 3 records wait"):
        case.pass_s(LIMIT_S, still)


def test_any_progress_gives_the_whole_time_anew() -> None:
    """A sink so slow that a batch takes almost the limit is slow, not stalled; at the log's end nothing waits."""
    case = Case()
    case.pass_s(3600, {"t-0": PartitionProgress(7, 7)})
    case.pass_s(LIMIT_S - 1, {"t-0": PartitionProgress(7, 8)})
    case.pass_s(1, {"t-0": PartitionProgress(8, 8)})
    assert case.dog.alive() == (True, "ok")
    for offset in range(5):
        case.pass_s(LIMIT_S - 1, {"t-0": PartitionProgress(offset, 100)})

    assert not case.dog.alive()[0]


async def test_a_stalled_role_is_ended_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that never returns is cancelled, and the process is given an end in case that does not help."""
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.001)
    ended: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def look() -> dict[str, PartitionProgress]:
        return {"t-0": PartitionProgress(1, 2)}

    dog = Watchdog(timedelta(milliseconds=20))
    with pytest.raises(Stalled, match="t-0"):
        await watched(hang(), dog, look, end_soon=lambda: ended.append("end"))

    assert ended == ["end", "cancelled"]


def test_a_role_that_cannot_even_end_is_ended_as_one_to_start_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hard, after a while, with a code that no supervisor takes for done."""
    timer = MagicMock()
    monkeypatch.setattr("streams.kafka.watchdog.threading.Timer", timer)
    module.end_hard_soon()
    _within_s, end, told = timer.call_args.args

    assert (end, told) == (os._exit, (75,))
    timer.return_value.start.assert_called_once_with()


async def test_a_log_that_is_read_to_its_end_is_no_stall() -> None:
    """It may end with what is no record (markers of transactions): what counts is where the consumer stands."""
    positions = {TopicPartition("t", 0): 7, TopicPartition("t", 1): 9}
    consumer = MagicMock(
        assignment=lambda: set(positions),
        end_offsets=AsyncMock(return_value=dict.fromkeys(positions, 9)),
        position=AsyncMock(side_effect=positions.__getitem__),
    )

    assert await unread_ends(consumer) == {TopicPartition("t", 0): 9}


async def test_the_broker_is_asked_now_and_then_and_may_fail() -> None:
    """Between questions, and when the broker does not answer, the last answer stands."""
    clock, answers = Clock(), [{"t": 5}, {"t": 9}]

    async def ask() -> dict[str, int]:
        if not answers:
            raise OSError("broker down")
        return answers.pop(0)

    ends = LogEnds(ask, clock=clock)
    known = [await ends.known()]
    for _ in range(4):
        clock.now_s += module.ASK_EVERY_S
        known += [await ends.known(), await ends.known()]

    assert known == [{}, {"t": 5}, {"t": 5}, *[{"t": 9}] * 6]
    assert ends.silent_s == 2 * module.ASK_EVERY_S
    assert metrics.gauge("kafka_silent_seconds")._value.get() == 2 * module.ASK_EVERY_S


@pytest.mark.parametrize(("fetched_s_ago", "errors"), [(1.0, 0), (400.0, 1)])
def test_a_batch_stands_for_all_its_partitions(fetched_s_ago: float, errors: int) -> None:
    """Faust sees one message of a poll and calls the streams of other partitions idle; a dead fetcher is told."""
    now_s, tp = 1_000.0, TP("turntide.turns.v1", 3)
    fetching = MagicMock()
    state = fetching._fetcher._subscriptions.subscription.assignment.state_value
    state.return_value = MagicMock(highwater=9, position=4, timestamp=1_000 * (now_s - fetched_s_ago))
    thread = CommittedConsumerThread.__new__(CommittedConsumerThread)
    thread.consumer = MagicMock(**{"app.monitor.stream_inbound_time": {}})
    thread.log, thread.time_started, thread._consumer = MagicMock(), now_s - 500.0, fetching
    thread.tp_fetch_request_timeout_secs = thread.tp_stream_timeout_secs = thread.tp_commit_timeout_secs = 300.0
    consumer = BatchConsumer.__new__(BatchConsumer)
    consumer._thread, consumer.batched = thread, frozenset({tp.topic})
    consumer.verify_event_path(now_s, tp)

    assert thread.log.error.call_count == errors
