"""Each role as its own user of Kafka, with the rights of `jobs.operate.strimzi`; erasing is in `tests/system`."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from qdrant_client import AsyncQdrantClient

from jobs.operate.topics import apply_topics
from jobs.shared.role_process import free_port
from jobs.shared.sending import send_to_turns
from models.errors import DeliveryFailed
from models.events import AlertChanged
from models.events.topics import ALERTS, AUDIT
from streams.api.commands import KafkaCommands
from streams.api.live.roles import KafkaLags
from streams.api.live.service import LivePage
from streams.http.audit import KafkaAudit
from streams.index.server import ServerStore
from streams.roles.api import serve_memory
from streams.settings import Settings, load_settings
from streams.settings.http import HttpSettings
from streams.wiring import ROLES, policy_of
from tests.support.fault_driver import _loaded, events, recorded, said, until, write
from tests.support.fault_driver import working as roles_at_work
from tests.support.guarded_kafka import GuardedKafka
from tests.support.openai_stand_in import standing_in
from tests.support.watching import receiving

_HARMFUL = json.dumps({"harmful": True, "probability": 0.98})
_FOLDING = ("sessions", "judge", "notify")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKafka]:
    """A broker of this module's own."""
    with GuardedKafka(tmp_path_factory.mktemp("guarded")) as broker:
        yield broker


@asynccontextmanager
async def working(guarded: GuardedKafka, settings: Settings) -> AsyncIterator[str]:
    """The roles in this process, each as its user; gives the address of the api role."""
    port = free_port()
    served = guarded.user("api", settings).model_copy(update={"http": HttpSettings(api_port=port, mcp=False)})
    commands, embedder = KafkaCommands(served), _loaded("wordllama")
    api = partial(
        serve_memory,
        served,
        policy_of(served),
        embedder,
        ServerStore(AsyncQdrantClient(":memory:"), embedder=embedder.name),
        commands=commands,
        audit=KafkaAudit(served),
        live=LivePage(served, commands),
    )
    users = (partial(ROLES[role], guarded.user(role, settings)) for role in _FOLDING)
    async with roles_at_work(*users, api) as tasks:
        yield f"http://127.0.0.1:{port}"
    await commands.close()
    for task in tasks:
        task.result()


async def test_nobody_is_refused_what_it_needs(guarded: GuardedKafka, topic_prefix: str, tmp_path: Path) -> None:
    """Turns come, an alert fires, is judged, told, acknowledged on the live page, audited; an operator looks after it.

    What is not needed is refused, and the broker's log tells of it: of the rest it tells nothing.
    """
    with standing_in() as model, receiving() as receiver:
        model.say = lambda _system, _user: _HARMFUL
        settings = load_settings(
            kafka={"bootstrap": guarded.bootstrap, "partitions": 1},
            topic_prefix=topic_prefix,
            data_dir=tmp_path,
            judge={"kind": "openai", "openai": {"base_url": model.base_url, "model": "guard"}},
            notify={"webhook_url": f"{receiver.url}/hook"},
            http={"sessions_port": 0, "judge_port": 0, "notify_port": 0},
        )
        await apply_topics(settings)
        await guarded.allow(settings)

        async def changes(cause: str) -> list[AlertChanged]:
            return [change for change in await events(settings, ALERTS) if change.cause == cause]

        async def asked(*command: str) -> Any:
            return json.loads(await asyncio.to_thread(guarded.operator, settings, *command))

        async with working(guarded, settings) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
            await send_to_turns(guarded.user("producer", settings), [recorded(said(n, risk=0.95)) for n in range(12)])
            (raised,) = await until(lambda: changes("raised"), "the alert")
            place = f"/v1/live/alerts/{raised.alert_id}/acknowledge"

            async def taken() -> bool:
                return (await client.post(place, json={"session_id": "s"})).is_success

            await until(taken, "the page knows the alert")
            await until(lambda: changes("acknowledged"), "the sessions role was told")
            await until(lambda: changes("judged"), "the judge's answer")
            await until(lambda: receiver.told, "a person is told")
            await until(lambda: events(settings, AUDIT), "the audit of it")
            for user in ("api", "keda"):
                await until(
                    KafkaLags(guarded.user(user, settings), {"sessions": ""}), f"{user} knows how far roles are"
                )
            checked = ("broker", "topics", "clock", "workers")
            found = await asked("doctor", *(part for name in checked for part in ("--check", name)))
            listed = await asked("alerts", "list")
        done = await asked("reset", "sessions", "--from-beginning", "--yes")
    before = guarded.denied()
    with pytest.raises(DeliveryFailed, match="ACLs"):
        await write(guarded.user("enrich", settings), ALERTS, [recorded(said(12))])

    assert (found["ok"], [check["check"] for check in found["checks"]]) == (True, [*checked])
    assert [row["alert_id"] for row in listed] == [raised.alert_id]
    assert done["changelog"]
    assert before == set()
    assert guarded.denied() == {("enrich", "DESCRIBE", f"Topic:LITERAL:{ALERTS.full_name(topic_prefix)}")}
