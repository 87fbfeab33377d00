"""Makes the golden files of a release: topics, offsets, archive and index as its own code wrote them.

Run by hand, once for each release, with the code of that release and not with this checkout's:

    mkdir /tmp/release && git archive v0.1.0 | tar x -C /tmp/release
    cd /tmp/release && PYTHONPATH=. python …/tests/upgrades/make.py …/tests/upgrades/v0.1.0

A Kafka of its own is started, the release's roles fold a few hundred made-up turns (the chaos driver's and the
beginning of the demo's project), the release compares what they left with its own replay, and they are stopped as for
an upgrade. What stands then is kept: `log.xz` (every topic's records and the groups' offsets, `Log` below),
`archive.tar.xz` and `vectors.tar.xz`. It imports nothing of the tests, which the release has otherwise.
"""

import asyncio
import lzma
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

import jobs
from jobs.demo.conversations import load_project_conversation, schedule
from jobs.lab.chaos.traffic import traffic
from jobs.operate.broker.local_kafka import LocalKafka
from jobs.operate.topics import apply_topics
from jobs.replay.comparison import settle
from jobs.shared.role_process import RoleProcess
from jobs.shared.sending import send_to_turns
from models.entities import REGISTRY
from models.wire.codec import encode
from streams.kafka.client import read_to_end
from streams.kafka.producer import Record
from streams.settings import load_settings

PREFIX = "upgraded"
"""Of topics and groups; alerts name the topic of their turn, so it is loaded under the same."""
PARTITIONS = 2
TURNS = 240
PROJECT_TURNS = 40
_ROLES = ("sessions", "memory", "enrich", "index", "archive")


class KeptRecord(msgspec.Struct, array_like=True):
    """One record. Offsets count from 0 without holes, so they are its place in the list."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]
    timestamp_ms: int


class Log(msgspec.Struct):
    """What stood on the broker: records by topic (without the prefix) and partition, and what groups had committed."""

    prefix: str
    partitions: int
    made_at: datetime
    turns: int
    records: dict[str, dict[int, list[KeptRecord]]]
    committed: dict[str, dict[str, dict[int, int]]]
    """Role → topic → partition → next offset."""


def said(now: datetime) -> Iterator[Record]:
    """Sessions of several users and apps, some of them disordered or poison, and the beginning of a project."""
    for sent in traffic(1, turns=TURNS, ends_at=now, span=timedelta(hours=1)):
        yield sent.record
    cues = [cue for cue in schedule([load_project_conversation()]) if cue.turn < PROJECT_TURNS]
    for cue in cues:
        event = cue.event(now - cues[-1].at)
        yield Record(event.session_id.encode(), encode(event))


async def make(folder: Path, out: Path) -> None:
    """Run the release below `folder` and keep what it left in `out`."""
    made_at = datetime.now(UTC)
    with LocalKafka(folder) as broker:
        settings = load_settings(
            kafka={"bootstrap": broker.bootstrap, "partitions": PARTITIONS},
            topic_prefix=PREFIX,
            data_dir=folder / "data",
        )
        await apply_topics(settings)
        roles = {name: RoleProcess(name, settings, log=folder / f"{name}.log") for name in _ROLES}
        try:
            for role in roles.values():
                role.start()
            await asyncio.gather(*(role.ready() for role in roles.values()))
            await send_to_turns(settings, said(made_at))
            settled = await settle(settings, within_s=120, index_url=roles["index"].url)
            if settled.comparison.differences or settled.comparison.not_checked:
                raise SystemExit(f"the release differs from itself: {settled.comparison}")
        finally:
            codes = {name: role.stop() for name, role in roles.items()}
        if any(codes.values()):
            raise SystemExit(f"a role did not stop well: {codes}")
        log = Log(PREFIX, PARTITIONS, made_at, len(settled.oracle.turn_keys), {}, {})
        for topic in REGISTRY.topics:
            log.records[topic.name] = await _records(settings, topic.full_name(PREFIX))
        log.committed = await _committed(broker.bootstrap)
    _pack(log, folder / "data", out)


def _pack(log: Log, data: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "log.xz").write_bytes(lzma.compress(msgspec.msgpack.encode(log), preset=9 | lzma.PRESET_EXTREME))
    for name in ("archive", "vectors"):
        with tarfile.open(out / f"{name}.tar.xz", "w:xz", preset=9) as packed:
            packed.add(data / name, arcname=name, filter=_nobodys)


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without the name of who made it."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


async def _records(settings: object, topic: str) -> dict[int, list[KeptRecord]]:
    found: dict[int, list[KeptRecord]] = {number: [] for number in range(PARTITIONS)}
    async for record in read_to_end(settings.kafka, topic):  # type: ignore[attr-defined]
        kept = found[record.partition]
        if record.offset != len(kept):
            raise SystemExit(f"{topic}[{record.partition}] has a hole at {len(kept)}: make it again, faster")
        kept.append(KeptRecord(record.key, record.value, list(record.headers), record.timestamp))
    return found


async def _committed(bootstrap: str) -> dict[str, dict[str, dict[int, int]]]:
    """Of every group, what it has committed."""
    admin, found = AIOKafkaAdminClient(bootstrap_servers=bootstrap), {}
    await admin.start()
    try:
        groups = [name for name, _ in await admin.list_consumer_groups()]
    finally:
        await admin.close()
    for group in sorted(groups):
        client = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
        await client.start()
        try:
            topics: dict[str, dict[int, int]] = {}
            for topic in REGISTRY.topics:
                for number in range(PARTITIONS):
                    offset = await client.committed(TopicPartition(topic.full_name(PREFIX), number))
                    if offset is not None:
                        topics.setdefault(topic.name, {})[number] = offset
        finally:
            await client.stop()
        found[group.removeprefix(f"{PREFIX}.")] = topics
    return found


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    if Path.cwd() not in Path(jobs.__file__).resolve().parents:
        raise SystemExit(f"the code is {jobs.__file__}, not that of {Path.cwd()}: set PYTHONPATH=. as shown above")
    with tempfile.TemporaryDirectory(prefix="turntide-release-") as scratch:
        asyncio.run(make(Path(scratch).resolve(), Path(sys.argv[1]).resolve()))
