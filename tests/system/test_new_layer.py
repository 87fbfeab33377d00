"""A memory layer of one file (`tests/support/new_layer.py`): found where all memory is, and erased with its user."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import httpx2
import msgspec
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from jobs.shared.role_process import environment_of
from jobs.shared.sending import send_to_turns
from models.errors import ConfigurationError
from models.events import Turn
from streams.archive.catalog import open_reader, paths_of
from streams.kafka.client import read_to_end
from streams.settings import Settings
from tests.support import new_layer
from tests.support.fault_driver import recorded, said, started, until
from tests.support.roles_child import RolesProcess

SAID = ("Hello, where is my parcel?", "And what does it weigh?", "Good morning! Is it there?")
COUNTED = {"anna/shop": 2, "anna/travel": 2, "bert/shop": 2}
"""Greetings by user and app."""


def turntide(settings: Settings, *arguments: str, **more: str) -> str:
    """What a command prints that knows the layer."""
    command = [sys.executable, "-m", new_layer.__name__, *arguments]
    environment = {**os.environ, **environment_of(settings), **more}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert ended.returncode == 0, (arguments, ended.stdout, ended.stderr)
    return ended.stdout


def turns() -> Iterator[Turn]:
    """A conversation of each user in each app, begun with a greeting, and with another one in it."""
    began = datetime.now(UTC) - timedelta(hours=1)
    for user, app in (name.split("/") for name in COUNTED):
        for number, content in enumerate(SAID):
            at = began + timedelta(seconds=number)
            yield said(number, session_id=f"{user}-{app}", user_id=user, app_id=app, content=content, at=at)


async def on_topic(settings: Settings) -> dict[str, int]:
    """The last value of each key on the layer's own topic."""
    topic, last = new_layer.GREETINGS_TOPIC.full_name(settings.topic_prefix), dict[bytes, bytes | None]()
    async for record in read_to_end(settings.kafka, topic):
        last[record.key] = record.value
    events = [msgspec.json.decode(value, type=new_layer.GreetingsCounted) for value in last.values() if value]
    return {f"{event.user_id}/{event.app_id}": event.greetings for event in events}


async def in_archive(settings: Settings) -> dict[str, int]:
    """As an analyst asks for it; nothing before there is an archive."""
    with suppress(ConfigurationError), closing(open_reader(paths_of(settings))) as lake:
        rows = lake.execute("SELECT user_id, app_id, greetings FROM greetings").fetchall()
        return {f"{user}/{app}": greetings for user, app, greetings in rows}
    return {}


async def asked(url: str, path: str, **parameters: str) -> Any:
    """An answer of the role's."""
    async with httpx.AsyncClient(base_url=url) as http:
        answer = await http.get(path, params=parameters)
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()


async def over_http(url: str) -> dict[str, int]:
    """As an assistant asks for it, user by user."""
    found = dict[str, int]()
    for user, app in (name.split("/") for name in COUNTED):
        for each in await asked(url, f"/v1/users/{user}/greetings", app_id=app):
            found[f"{each['user_id']}/{each['app_id']}"] = each["greetings"]
    return found


async def by_tool(url: str) -> dict[str, int]:
    """As a model asks for it."""
    found = dict[str, int]()
    async with httpx2.AsyncClient() as http, Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
        for user, app in (name.split("/") for name in COUNTED):
            result = await client.call_tool("list_user_greetings", {"user_id": user, "app_id": app})
            told: Any = result.structured_content
            found |= {f"{each['user_id']}/{each['app_id']}": each["greetings"] for each in told["results"]}
    return found


async def found(settings: Settings, url: str) -> dict[str, dict[str, int]]:
    """What each place says."""
    return {
        "topic": await on_topic(settings),
        "archive": await in_archive(settings),
        "http": await over_http(url),
        "mcp": await by_tool(url),
    }


async def test_a_layer_of_one_file(settings: Settings, tmp_path: Path) -> None:
    """On its topic, in archive, index, API, MCP and dictionary; its state is as replayed; then forgotten everywhere."""
    everywhere = ("topic", "archive", "http", "mcp")
    left = {name: greetings for name, greetings in COUNTED.items() if name != "anna/shop"}
    turntide(settings, "topics", "apply")
    # All that the layer passes through, in one process that knows it.
    roles = RolesProcess(
        settings,
        *("sessions", "memory", "index", "archive"),
        log=tmp_path / "roles.log",
        command=(new_layer.__name__, "roles"),
        environment={"TURNTIDE_ARCHIVE__FLUSH_AGE": "PT1S"},
    )
    async with started(roles):
        url = roles.url
        await send_to_turns(settings, map(recorded, turns()))
        await until(lambda: counted(settings, url, COUNTED), "greetings everywhere")
        compared = turntide(settings, "replay", "--compare", "--output", "json")
        contract = await asked(url, "/openapi.json")
        proof = json.loads(turntide(settings, "erase", "--user", "anna", "--app", "shop", "--yes", "--output", "json"))
        after = await found(settings, url)
    (described,) = json.loads(turntide(settings, "dictionary", "greetings", "--output", "json"))["views"]

    removed = {each["store"] for each in proof["stores"] if each["removed"] and not each["remaining"]}
    assert after == dict.fromkeys(everywhere, left)
    assert removed >= {"topic greetings.v1", "archive greetings", "vectors greetings"}
    assert json.loads(compared)["checked"]["archive greetings.v1"] == sum(COUNTED.values())
    assert contract["paths"]["/v1/users/{user_id}/greetings"]["get"]["operationId"] == "list_user_greetings"
    assert described["purpose"] == "How often a user said hello."
    assert {"greetings": "Turns that began so."}.items() <= {
        column["name"]: column["meaning"] for column in described["columns"]
    }.items()


async def counted(settings: Settings, url: str, wanted: dict[str, int]) -> bool:
    """Whether all places say so; what is dear is asked once the rest does."""
    soon = await on_topic(settings) == wanted == await over_http(url)
    return soon and all(each == wanted for each in (await found(settings, url)).values())
