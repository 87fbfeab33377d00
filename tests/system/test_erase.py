"""One erasure through every store there is: searched byte by byte for a word that only the subject ever said."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiokafka import AIOKafkaProducer

from jobs.operate.topics import apply_topics
from jobs.shared.role_process import RoleProcess
from jobs.shared.sending import send_to_turns
from models.events import ErasedStore, ErasureProved, Role, SessionEnded, Turn
from models.events.topics import DEAD_LETTERS, FACTS, MEMORIES, PROFILES, PROJECTS, USER_EPISODES
from models.policy import IntakePolicy
from models.wire.codec import encode
from streams.archive.catalog import open_reader, paths_of
from streams.erase.logs import opened
from streams.erase.purge import IdlePartitions
from streams.kafka.producer import Record
from streams.settings import KafkaSettings, Settings, StateSettings
from tests.support.bytes_left import SEARCHED, holding, holds
from tests.support.fault_driver import records_on, said, started, until, until_remembered, valued
from tests.support.guarded_kafka import GuardedKafka
from tests.support.lake_records import example
from tests.support.session_driver import unnumbered

pytestmark = pytest.mark.timeout(600)

HERS, HIS = "xylocarpquill", "ptarmiganflute"
"""Words that only Anna, or only Bert, ever says; compared without case."""
PROJECT = "lamps"
"""Of each app one; both users speak of it, and in the shop both made the same decision."""
TASTE = "quincelarch"
"""A word of hers that becomes part of a fact's key."""
ROLES = ("sessions", "memory", "enrich", "index", "archive")
EAGER = {"log.retention.check.interval.ms": 1000, "log.cleaner.backoff.ms": 500, "log.segment.delete.delay.ms": 500}
"""A broker that removes what is to be removed within seconds rather than minutes."""
REMOVED_FROM = {
    *(
        "topic turns.v1",
        "topic numbered.v1",
        "archive numbered_turns",
        "topic facts.v1",
        "topic user-episodes.v1",
        "topic memories.v1",
        "topic dead-letters.v1",
    ),
    *("state sessions", "state memory", "archive turns", "archive dead_letters", "vectors turns", "vectors facts"),
    *("topic projects.v1", "archive project_items", "archive project_commands"),
}
SAID = (
    "My name is {word}.",
    "I live in {word}.",
    "I decided to buy the {word} lamp for the kitchen.",
    "We decided to use PostgreSQL as our database.",
    "When does the {word} parcel number {n} arrive?",
    "Can the {word} lamp number {n} be dimmed in the evening?",
)


@pytest.fixture(scope="module")
def eager_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKafka]:
    """A broker of this module's own, whose files are searched."""
    with GuardedKafka(tmp_path_factory.mktemp("eager"), EAGER | SEARCHED) as broker:
        yield broker


@pytest.fixture
async def settings(eager_kafka: GuardedKafka, topic_prefix: str, tmp_path: Path) -> Settings:
    """Two partitions, so that both users stand on each; state on disk."""
    settings = Settings(
        kafka=KafkaSettings(bootstrap=eager_kafka.bootstrap, partitions=2),
        topic_prefix=topic_prefix,
        data_dir=tmp_path / "data",
        state=StateSettings(store="rocksdb"),
    )
    await apply_topics(settings)
    await eager_kafka.allow(settings)
    return settings


def talk(user: str, word: str, app: str, session: str, turns: int) -> Iterator[Turn]:
    """A conversation in which the user's word comes in every message, long enough for an episode and packed topics."""
    began = datetime.now(UTC) - timedelta(hours=1)
    for n in range(turns):
        asked = SAID[n // 2 % len(SAID)].format(word=word, n=n)
        answered = f"Noted: the {word} order number {n} is on its way to you."
        yield said(
            n,
            session_id=session,
            user_id=user,
            app_id=app,
            project_id=PROJECT,
            role=Role.ASSISTANT if n % 2 else Role.USER,
            content=answered if n % 2 else asked,
            at=began + timedelta(seconds=10 * n),
        )


def spoken() -> Iterator[Record]:
    """Both users in both apps; one session of each is over, and something of each is no turn."""
    for user, word in (("anna", HERS), ("bert", HIS)):
        for app, turns in (("shop", 30), ("travel", 8)):
            session = f"{user}-{app}"
            for turn in talk(user, word, app, session, turns):
                # The shop's producer counts its turns, the other one does not.
                yield Record(session.encode(), encode(turn if app == "shop" else unnumbered(turn)))
        ended = SessionEnded(session_id=f"{user}-shop", timestamp=datetime.now(UTC))
        yield Record(ended.session_id.encode(), encode(ended))
        refused = {"session_id": f"{user}-shop", "user_id": user, "app_id": "shop", "turn": -1, "content": word}
        yield Record(f"{user}-shop".encode(), msgspec.json.encode(refused))
    (*_, last) = talk("anna", HERS, "travel", "anna-travel", 9)
    yield Record(last.session_id.encode(), encode(msgspec.structs.replace(last, content=f"I prefer {TASTE} tea.")))


@asynccontextmanager
async def working(settings: Settings, broker: GuardedKafka, folder: Path) -> AsyncIterator[dict[str, RoleProcess]]:
    """All roles, each as its own user of the broker, ready, stopped at the end."""
    eager = {"TURNTIDE_ARCHIVE__FLUSH_AGE": "PT1S", "TURNTIDE_ARCHIVE__MERGE_EVERY": "PT20S"}
    roles = {
        name: RoleProcess(name, settings, log=folder / f"{name}.log", extra_environment={**eager, **broker.login(name)})
        for name in ROLES
    }
    async with started(*roles.values()):
        yield roles


async def both_refused(settings: Settings) -> bool:
    """Whether a dead letter of each came."""
    return len(await records_on(settings, DEAD_LETTERS)) == 2


def erased(settings: Settings, broker: GuardedKafka, *options: str) -> ErasureProved:
    """`turntide memory erase`, as an operator runs it."""
    printed = broker.operator(settings, "erase", "--user", "anna", "--yes", *options)
    return msgspec.json.decode(printed, type=ErasureProved)


def asked(settings: Settings, sql: str) -> list[tuple[Any, ...]]:
    """Ask the archive as an analyst."""
    with closing(open_reader(paths_of(settings))) as con:
        return con.execute(sql).fetchall()


async def test_nothing_of_an_erased_user_is_left(settings: Settings, eager_kafka: GuardedKafka, tmp_path: Path) -> None:
    """No byte of hers in topics, changelogs, state, vectors and archive; all of his; a second run removes nothing.

    Her ids stay for a while in keys of changelogs' null records, which a recovery needs (`streams.erase.purge`). All of
    it is done by users of Kafka who may do no more than they need.
    """
    kafka_log = eager_kafka.home / "log"
    async with working(settings, eager_kafka, tmp_path / "logs"):
        await send_to_turns(settings, spoken())
        await until_remembered(settings, (FACTS, USER_EPISODES, MEMORIES, PROJECTS), (HERS, HIS))
        await until(partial(both_refused, settings), "dead letters of both")
        for name, folder in places(settings, kafka_log).items():
            await until(partial(holds, folder, HERS), f"words of hers in {name}")
        proof = await asyncio.to_thread(erased, settings, eager_kafka, "--purge-logs")
        await until(lambda: not holds(kafka_log, HERS), "nothing of hers in the broker's files")
        again = await asyncio.to_thread(erased, settings, eager_kafka)
        after = {name: holding(folder, HERS) for name, folder in places(settings, kafka_log).items()}
        tasted = {name: holding(folder, TASTE) for name, folder in places(settings, kafka_log).items()}
        memories = await valued(settings, MEMORIES, HIS)
        in_projects = await valued(settings, PROJECTS, HIS)
        named = [path for store in ("archive", "vectors") for path in holding(settings.data_dir / store, "anna-shop")]
    in_logs = holding(tmp_path / "logs", HERS)

    assert after == {name: [] for name in after}
    assert (in_logs, named, eager_kafka.denied()) == ([], [], set())
    assert tasted == {name: [] for name in tasted}
    remaining = {store.store: store.expires_at is not None for store in proof.stores if store.remaining}
    assert remaining == {"keys sessions-state.v1": True, "keys memory-state.v1": True}
    assert (proof.complete, proof.sessions) == (False, 2)
    assert {s.store for s in proof.stores if s.removed} >= REMOVED_FROM
    assert {s.store: s.removed for s in again.stores if s.removed} == {}
    assert asked(settings, "SELECT user_id, count(*) FROM turns GROUP BY ALL") == [("bert", 38)]
    assert memories > 0
    assert in_projects > 0
    decided = (
        "FROM project_memories SELECT list_distinct([s.user_id for s in sources]) "
        "WHERE app_id = 'shop' AND content ILIKE '%{}%'"
    )
    assert asked(settings, decided.format("PostgreSQL")) == [(["bert"],)]
    assert asked(settings, decided.format(HIS)) != []


def places(settings: Settings, kafka_log: Path) -> dict[str, Path]:
    """Where something of a user is kept."""
    return {
        "kafka": kafka_log,
        "archive": settings.data_dir / "archive",
        "vectors": settings.data_dir / "vectors",
        "state": settings.data_dir / "state",
    }


async def test_a_quiet_partition_is_cleaned_when_it_is_due(settings: Settings, eager_kafka: GuardedKafka) -> None:
    """Kafka leaves the file that is open alone until the next record comes: the archive role writes one."""
    proved = datetime.now(UTC) - PROFILES.compacted_within - timedelta(hours=1)
    left = ErasedStore(store="log profiles.v1", looked_at=2, removed=0, remaining=1, expires_at=proved)
    proof = msgspec.structs.replace(
        example(ErasureProved), timestamp=proved, requested_at=proved, stores=[left], complete=False
    )
    topic = PROFILES.full_name(settings.topic_prefix)
    async with AIOKafkaProducer(bootstrap_servers=eager_kafka.bootstrap) as producer:
        for value in (HERS.encode(), None):
            await producer.send_and_wait(
                topic, value, key=b"anna-shop", partition=0, timestamp_ms=round(proved.timestamp() * 1000)
            )
    before = holding(eager_kafka.home / "log", HERS)
    async with opened(settings, IntakePolicy()) as logs:
        idle = IdlePartitions(logs)
        woken = [await idle.wake([proof], datetime.now(UTC)) for _ in range(2)]

    assert (bool(before), woken) == (True, [1, 0])
    await until(lambda: not holds(eager_kafka.home / "log", HERS), "the value is gone")
