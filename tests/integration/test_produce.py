"""`turntide produce` against a real broker: everything arrives, in order, under its key."""

import io
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from aiokafka.partitioner import DefaultPartitioner

from jobs.produce.command import ProductionSummary, send
from jobs.produce.formats import Filling, Malformed
from jobs.produce.formats.source import InputSource
from jobs.shared.role_process import environment_of
from jobs.shared.sending import Pace
from models.events import Turn
from models.events.topics import TURNS
from streams.settings import Settings
from tests.support.fault_driver import records_on, said

NOW = datetime(2026, 1, 5, tzinfo=UTC)
PARTITIONS = 3


def turn_line(session: str, number: int, content: str = "text") -> bytes:
    """A line of Turntide's own format."""
    return msgspec.json.encode(said(number, session_id=session, content=content, at=NOW)) + b"\n"


async def produced(settings: Settings, lines: bytes, **options: Any) -> tuple[ProductionSummary, list[Malformed]]:
    """Send lines; the summary and what was refused."""
    refused: list[Malformed] = []
    source = InputSource(io.BytesIO(lines), Filling(source="test", now=NOW))
    return await send(settings, source, Pace(), report=refused.append, **options), refused


async def test_every_turn_arrives_in_the_order_of_its_session(settings: Settings) -> None:
    """10,000 turns of 100 sessions whose lines alternate: none lost, none doubled, each session in order.

    A turn is where Kafka's own choice for its key is, or those of other producers would land elsewhere. It names its
    schema, and the broker stamps it: event time is no basis for retention.
    """
    before = datetime.now(UTC).timestamp() * 1000
    lines = b"".join(turn_line(f"s-{n % 100}", n // 100) for n in range(10_000))
    summary, _ = await produced(settings, lines)
    choose, partitions = DefaultPartitioner(), list(range(PARTITIONS))
    numbers: dict[str, list[int]] = defaultdict(list)
    for record in await records_on(settings, TURNS):
        turn = msgspec.json.decode(record.value, type=Turn)
        assert (record.key, record.partition) == (turn.session_id.encode(), choose(record.key, partitions, partitions))
        assert dict(record.headers) == {"content-type": b"application/json", "schema": b"turn.v1"}
        assert record.timestamp >= before - 1000
        numbers[turn.session_id].append(turn.turn)

    assert (summary.turns, summary.acknowledged, summary.sessions) == (10_000, 10_000, 100)
    assert numbers == {f"s-{n}": list(range(100)) for n in range(100)}


async def test_bad_lines_a_limit_and_other_times(settings: Settings) -> None:
    """Each bad line is reported and does not stop the rest; one that the topic would refuse is one of them.

    No more is sent than asked for, and times become those of sending.
    """
    escapes = json.dumps("\x01" * 200_000).encode()  # 200 KB of content, 1.2 MB on the wire
    oversize = turn_line("s", 1).replace(b'"text"', escapes)
    bad, refused = await produced(settings, turn_line("s", 0) + b"{oops\n" + oversize + turn_line("s", 2))
    before = datetime.now(UTC)
    some, _ = await produced(settings, b"".join(turn_line("s", n) for n in range(100)), limit=7, shift_to_now=True)
    first, second, *shifted = [msgspec.json.decode(r.value, type=Turn) for r in await records_on(settings, TURNS)]
    times = [turn.timestamp for turn in shifted]

    assert [malformed.line for malformed in refused] == [2, 3]
    assert (bad.turns, bad.malformed, bad.acknowledged, first.turn, second.turn) == (2, 2, 2, 0, 2)
    assert (some.turns, some.acknowledged, len(times)) == (7, 7, 7)
    assert before <= min(times)
    assert times == sorted(times)


async def test_interrupt_delivers_what_was_read(settings: Settings, tmp_path: Path) -> None:
    """Ctrl-C in the middle: what was counted is on the topic, the exit code says why it stopped."""
    file = tmp_path / "many.jsonl"
    file.write_bytes(b"".join(turn_line("s", n) for n in range(100_000)))
    environment = {**os.environ, **environment_of(settings)}
    command = [sys.executable, "-m", "jobs.cli", "produce", str(file), "--rate", "100", "--output", "json"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:  # noqa: S603, ASYNC220
        while not await records_on(settings, TURNS):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=30)
    summary = json.loads(printed)

    assert (process.returncode, summary["interrupted"]) == (130, True)
    assert 0 < summary["turns"] < 100_000
    assert len(await records_on(settings, TURNS)) == summary["turns"] == summary["acknowledged"]
