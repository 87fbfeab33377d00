"""Turns over HTTP through the whole system: a killed gateway, requests again, two tenants with the same ids."""

import asyncio
import json
import re
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pytest

from jobs.replay.comparison import settle
from jobs.shared.role_process import RoleProcess
from models.events.topics import NUMBERED, TURNS
from models.wire.codec import decode_output
from streams.archive.catalog import open_reader, paths_of
from streams.kafka.client import read_to_end
from streams.settings import Settings
from tests.support.fault_driver import started
from tests.support.roles_child import RolesProcess

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
SAID = 20
APPS = ("shop", "bank")


def bodies() -> list[dict[str, Any]]:
    """What two tenants say in a session of one id, to the same user's id, under the same ids of messages."""
    whose = {"session_id": "chat-1", "user_id": "u-1", "role": "user"}
    return [
        {**whose, "app_id": app, "message_id": f"m-{n}", "content": f"Number {n} of the {app}."}
        for n in range(SAID)
        for app in APPS
    ]


def on_the_page() -> list[tuple[str, dict[str, Any]]]:
    """Path and body of each request that `deploy/gateway.md` and the README tell."""
    found = []
    for page in ("deploy/gateway.md", "README.md"):
        text = (ROOT / page).read_text()
        for path, body in re.findall(r"curl 127\.0\.0\.1:8709(\S+) --json '([^']+)'", text):
            found.append((path, json.loads(body)))
    return found


async def posted(client: httpx.AsyncClient, path: str, body: Any) -> httpx.Response:
    """The answer, asked for again while the turns are not visible in time: how long that takes is the machine's."""
    while (answer := await client.post(path, json=body)).status_code == HTTPStatus.GATEWAY_TIMEOUT:
        pass
    return answer


async def send(gateway: RoleProcess, said: list[dict[str, Any]]) -> None:
    """Send each until it is answered, as a client does: whatever became of the request before."""
    async with httpx.AsyncClient(base_url=gateway.url, timeout=5) as client:
        for body in said:
            for _ in range(200):
                try:
                    answer = await client.post("/v1/turns", json=body)
                except httpx.TransportError:
                    await asyncio.sleep(0.1)
                    continue
                assert answer.status_code == 202
                break
            else:
                pytest.fail("the gateway did not come back")


async def test_a_retry_after_a_killed_gateway_changes_nothing(settings: Settings, tmp_path: Path) -> None:
    """Every message once, numbered from 0 in the order in which it was sent, in archive and index alike."""
    url = {"TURNTIDE_ARCHIVE__FLUSH_AGE": "PT1S"}
    roles = RolesProcess(
        settings, "sessions", "memory", "index", "archive", log=tmp_path / "roles.log", environment=url
    )
    asks = {"TURNTIDE_GATEWAY__MEMORY_URL": roles.url}
    gateway = RoleProcess("gateway", settings, log=tmp_path / "gateway.log", extra_environment=asks)
    async with started(roles, gateway):
        half = len(bodies()) // 2
        await send(gateway, bodies()[:half])
        sending = asyncio.create_task(send(gateway, bodies()[half - 6 :]))
        await asyncio.sleep(0.05)
        gateway.kill()
        gateway.start()
        await sending
        await send(gateway, bodies()[-6:])
        async with httpx.AsyncClient(base_url=gateway.url, timeout=30) as client:
            shown = await posted(client, "/v1/turns", {"turns": bodies()[-2:], "wait": "visible"})
            told = [await posted(client, path, body) for path, body in on_the_page()]
        settled = await settle(settings, within_s=60, index_url=roles.url)
        async with httpx.AsyncClient(base_url=roles.url, timeout=30) as client:
            path = "/v1/sessions/chat-1/turns?last=100&app_id="
            indexed: dict[str, Any] = {app: (await client.get(path + app)).json() for app in APPS}
    on_topic = read_to_end(settings.kafka, NUMBERED.full_name(settings.topic_prefix))
    events: list[Any] = [decode_output(NUMBERED, each.value or b"") async for each in on_topic]
    numbered = [each for each in events if each.session_id == "chat-1"]
    said = read_to_end(settings.kafka, TURNS.full_name(settings.topic_prefix))
    sent = sum([1 async for each in said if each.key == b"chat-1"])
    with open_reader(paths_of(settings)) as lake:
        archived = lake.execute(
            "SELECT app_id, turn, message_id, content FROM turns WHERE session_id = 'chat-1' ORDER BY ALL"
        ).fetchall()

    assert (settled.comparison.differences, set(settled.comparison.not_checked)) == (0, {"answers"})
    assert sent > len(bodies()) == len(numbered)
    expected = [(app, n, f"m-{n}", f"Number {n} of the {app}.") for app in sorted(APPS) for n in range(SAID)]
    assert sorted((each.app_id, each.turn, each.message_id, each.content) for each in numbered) == expected
    assert archived == expected
    assert [
        (app, turn["turn"], turn["message_id"], turn["content"]) for app in sorted(APPS) for turn in indexed[app]
    ] == expected
    assert sorted(answer.status_code for answer in told) == [200, 202, 202, 202, 202]
    assert [each["turn"] for each in shown.json()["accepted"]] == [SAID - 1, SAID - 1]
