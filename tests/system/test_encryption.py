"""Encryption at rest through every store there is, and an app's key erased: searched byte by byte."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from jobs.operate.broker.local_kafka import LocalKafka
from jobs.operate.topics import apply_topics
from jobs.shared.role_process import RoleProcess
from jobs.shared.sending import send_to_turns
from models.events import Role, SessionEnded, Turn
from models.events.topics import FACTS, MEMORY_STATE, PROJECTS, SESSION_STATE, TURNS, USER_EPISODES
from models.wire.codec import encode
from streams.archive.catalog import open_reader, paths_of
from streams.archive.rows import opened_value
from streams.encryption.keyring import keyring_of
from streams.kafka.producer import Record
from streams.settings import KafkaSettings, Settings, StateSettings
from streams.state.table import StateTable
from tests.support.bytes_left import SEARCHED, holding
from tests.support.encrypted import encrypted, environment
from tests.support.fault_driver import assert_equal_to_replay, said, started, until, until_remembered, valued
from tests.support.roles_child import RolesProcess

pytestmark = pytest.mark.timeout(400)

SHOP, BANK, ANEW = "xylocarpquill", "ptarmiganflute", "quincelarch"
"""Words that are only ever said in one app; compared without case."""
SAID = (
    "My name is {word}.",
    "I live in {word}.",
    "I decided to buy the {word} lamp for the kitchen.",
    "We decided to use {word} as our database.",
    "When does the {word} parcel number {n} arrive?",
)
EAGER = {"TURNTIDE_ARCHIVE__FLUSH_AGE": "PT1S", "TURNTIDE_ARCHIVE__MERGE_EVERY": "PT20S"}
MADE = (TURNS, FACTS, USER_EPISODES, PROJECTS)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LocalKafka]:
    """A broker whose files are searched."""
    with LocalKafka(tmp_path / "broker", properties=SEARCHED) as running:
        yield running


@pytest.fixture
async def settings(broker: LocalKafka, topic_prefix: str, tmp_path: Path) -> Settings:
    """One partition, so that both apps stand on it; state on disk."""
    made = Settings(
        kafka=KafkaSettings(bootstrap=broker.bootstrap, partitions=1),
        topic_prefix=topic_prefix,
        data_dir=tmp_path / "data",
        state=StateSettings(store="rocksdb"),
        encryption=encrypted(tmp_path),
    )
    await apply_topics(made)
    return made


def talk(app: str, word: str, session: str = "s-1", turns: int = 30) -> Iterator[Record]:
    """A conversation in which the app's word comes in every message; all ids are the same in the other app."""
    began = datetime.now(UTC) - timedelta(hours=1)
    for n in range(turns):
        text = f"Noted: {word} number {n}." if n % 2 else SAID[n // 2 % len(SAID)].format(word=word, n=n)
        role = Role.ASSISTANT if n % 2 else Role.USER
        names: dict[str, Any] = {"session_id": session, "user_id": "anna", "app_id": app, "project_id": "lamps"}
        turn: Turn = said(n, role=role, content=text, at=began + timedelta(seconds=10 * n), **names)
        yield Record(session.encode(), encode(turn))
    ended = SessionEnded(session_id=session, app_id=app, timestamp=datetime.now(UTC))
    yield Record(session.encode(), encode(ended))


def archived(settings: Settings) -> dict[str, set[str]]:
    """Contents of turns in the archive by app, as an analyst with the keys has them."""
    with closing(open_reader(paths_of(settings))) as lake:
        rows = opened_value(lake.execute("SELECT app_id, content, content_bytes FROM turns").fetchall())
    found: dict[str, set[str]] = {}
    for app, content, content_bytes in rows:
        found.setdefault(app, set()).add(content)
        assert content == "[erased]" or content_bytes == len(content.encode())
    return found


async def state_of(settings: Settings) -> set[str]:
    """Entities that the changelogs hold."""
    found = set[str]()
    for topic in (SESSION_STATE, MEMORY_STATE):
        table = StateTable(settings, topic.full_name(settings.topic_prefix), None)
        await table.recover([0])
        found |= {entity for entity, parts in table.partition(0).entities.items() if parts}
    return found


async def prompt(http: httpx.AsyncClient, app: str) -> str:
    """What is remembered of the user in an app."""
    asked = {"user_id": "anna", "app_id": app, "query": "What about the lamp?", "token_budget": 2_000}
    answered: str = (await http.post("/v1/context", json=asked)).raise_for_status().json()["prompt"]
    return answered.lower()


@pytest.mark.behaviour("app-28")
async def test_no_byte_says_what_was_said_and_an_erased_key_takes_its_app(settings: Settings, tmp_path: Path) -> None:
    """Broker, changelogs, state, vectors, archive; killed and replayed; after one app's key the other app is whole.

    Words stand nowhere in plain text, and are all there for whoever has the keys. The erased app is gone for all
    readers, while roles run and after they start again; when it comes back it begins anew.
    """
    environ = {**EAGER, **environment(settings.encryption)}
    logs = tmp_path / "logs"
    names = ("sessions", "memory")
    killed = [RoleProcess(n, settings, log=logs / f"{n}.log", extra_environment=environ) for n in names]
    others = RolesProcess(settings, "enrich", "index", "archive", log=logs / "others.log", environment=environ)
    async with started(*killed, others):
        url = others.url
        async with httpx.AsyncClient(base_url=url, timeout=30) as http:
            await send_to_turns(settings, [*talk("shop", SHOP), *talk("bank", BANK)])
            await until_remembered(settings, MADE, (SHOP, BANK))
            for role in killed:
                role.kill()
                role.start()
                await role.ready()
            await send_to_turns(settings, [*talk("shop", SHOP, "s-2", 4), *talk("bank", BANK, "s-2", 4)])
            await assert_equal_to_replay(settings, url)
            plain = {word: holding(tmp_path, word) for word in (SHOP, BANK)}
            told = {app: await prompt(http, app) for app in ("shop", "bank")}
            kept = archived(settings)
            found = await _points(http, "shop")

            ring = keyring_of(settings.encryption)
            assert ring is not None
            gone = ring.erase("shop")
            await until(lambda: _no_points(http, "shop"), "no point of the app")
            left = {topic.name: await valued(settings, topic, SHOP) for topic in MADE}
            told_after = {app: await prompt(http, app) for app in ("shop", "bank")}
            state = await state_of(settings)
            await send_to_turns(settings, [*talk("shop", ANEW, "s-3"), *talk("bank", BANK, "s-3")])
            await until_remembered(settings, MADE, (ANEW, BANK))
            await until(lambda: len(archived(settings)["shop"]) > 1, "new turns in the archive")
            await until(lambda: _tells(http, "shop", ANEW), "new facts in the index")
            again = {app: await prompt(http, app) for app in ("shop", "bank")}
            left |= {f"{topic.name} again": await valued(settings, topic, SHOP) for topic in MADE}
            kept_after = archived(settings)

    assert plain == {SHOP: [], BANK: []}
    assert found > 0
    assert SHOP in told["shop"]
    assert BANK not in told["shop"]
    assert all(BANK in each["bank"] for each in (told, told_after, again))
    assert all(SHOP in text.lower() for text in kept["shop"])
    assert len(gone) == 1
    assert left == dict.fromkeys(left, 0)
    assert SHOP not in told_after["shop"] + again["shop"]
    assert ANEW in again["shop"]
    assert not any("shop" in entity for entity in state)
    assert any(entity == "user:bank/anna" for entity in state)
    assert "[erased]" in kept_after["shop"]
    assert kept["bank"] <= kept_after["bank"]
    assert holding(logs, SHOP) == []


async def _tells(http: httpx.AsyncClient, app: str, word: str) -> bool:
    return word in await prompt(http, app)


async def _points(http: httpx.AsyncClient, app: str) -> int:
    asked = {"user_id": "anna", "app_id": app, "query": "lamp", "kind": "turns"}
    return len((await http.post("/v1/search", json=asked)).raise_for_status().json()["turns"])


async def _no_points(http: httpx.AsyncClient, app: str) -> bool:
    return not await _points(http, app)
