"""Memories of apps over HTTP: the source's paths and bodies, who may ask, and that a writer reads its own writes."""

import asyncio
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from models.errors import DeliveryFailed
from models.events import Position
from models.policy.app import AppPolicy
from streams.api import commands
from streams.api.assembly import admin_routes
from streams.api.commands import AUDIT
from tests.support.api_apps import AT, Apps, Erasures, Sessions, memory, space
from tests.support.api_doubles import Served
from tests.support.http_api import api_of, client_of

ODD = 'shop/eu ü%2F"memories/7'
"""An app id with everything that a path could stumble over."""


@pytest.fixture
def served(served: Served) -> Served:
    """A role that knows two memories of app `a`, one of a user in it, and one of another app that it may read."""
    served.apps.known += [
        memory(1, "User prefers calls after 2pm.", conflicts_with=[2], related_conversations=["s-9"]),
        memory(2, "User prefers calls before noon.", updated_at=AT + timedelta(days=1), pinned=True),
        memory(1, "Anna is vegan.", user="anna"),
        memory(5, "Orders have eight digits.", app="b", shared_with=["a"]),
        memory(6, "Not for others.", app="b"),
    ]
    return served


async def asked(client: httpx.AsyncClient, method: str, path: str, status: int = 200, **body: Any) -> Any:
    """An answer of that status."""
    answer = await client.request(method, path, json=body or None)
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.mark.behaviour("app-30")
async def test_an_export_of_any_name_is_a_file(client: httpx.AsyncClient) -> None:
    """A name of any kind makes a header that is none of its own."""
    odd = await client.get(f"/apps/{quote(ODD, safe='')}/memories/export")

    assert odd.headers["content-disposition"] == (
        "attachment; filename=\"memories.json\"; filename*=UTF-8''memories-shop%2Feu%20%C3%BC%252F%22memories%2F7.json"
    )


async def test_reads_are_audited(served: Served, client: httpx.AsyncClient) -> None:
    """Who looked, how, and at how many; a log that does not answer holds up nobody who reads."""
    for place in ("", "/1", "/export", "/search?q=meetings"):
        await asked(client, "GET", f"/apps/a/memories{place}")
    await noted()
    served.apps.fails = DeliveryFailed("away")
    await asked(client, "GET", "/apps/a/memories")
    await noted()

    assert [(read.how, read.count, read.memory_id, read.by, read.app_id) for read in served.apps.reads] == [
        ("list", 2, None, "local", "a"),
        ("one", 1, 1, "local", "a"),
        ("export", 2, None, "local", "a"),
        ("search", 0, None, "local", "a"),
    ]


async def noted() -> None:
    """What is written beside the answers is written."""
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() == AUDIT))


@pytest.mark.behaviour("app-16")
@pytest.mark.parametrize("path", ["/apps/a/memories/", "/apps/a/memories//"])
async def test_a_number_that_is_missing_deletes_nothing(served: Served, path: str) -> None:
    """Nor does a client that follows redirects."""
    async with served.client() as client:
        answer = await client.delete(path, follow_redirects=True)

    assert (answer.status_code, served.apps.sent) == (404, [])


@pytest.mark.parametrize(
    ("told", "status", "code"),
    [
        ("not_found", 404, "not_found"),
        ("too_long", 422, "invalid_request"),
        ("too_many_pinned", 409, "too_many_pinned"),
    ],
)
async def test_what_the_fold_refuses_is_told(
    served: Served, client: httpx.AsyncClient, told: str, status: int, code: str
) -> None:
    """It alone knows what there is."""
    served.apps.told = told

    assert (await asked(client, "PUT", "/apps/a/memories/1", status=status, pinned=True))["code"] == code


async def purged(apps: Apps, method: str, end: str) -> httpx.Response:
    """What the purge of app `a` is answered."""
    body: dict[str, Any] = {"json": {"purgeMemories": True}} if method == "POST" else {}
    async with client_of(api_of(admin_routes(apps, AppPolicy(), apps, Erasures(), Sessions()))) as client:
        return await client.request(method, f"/apps/a/{end}", **body)


@pytest.mark.parametrize(("method", "place"), [("DELETE", "memories"), ("POST", "uninstall")])
@pytest.mark.parametrize(("whose", "left"), [("", ["Bo is bald."]), ("?user_id=anna", ["All.", "Cy.", "Bo is bald."])])
async def test_an_app_is_purged_with_its_users(method: str, place: str, whose: str, left: list[str]) -> None:
    """Nobody is told that an app's memories are gone while its users' stay; of a named user only those go."""
    users = [memory(1, "Anna is vegan.", user="anna"), memory(1, "All."), memory(1, "Cy.", user="cy")]
    apps = Apps([*users, memory(1, "Bo is bald.", user="anna", app="b")], [space("a", user) for user in ("anna", "cy")])
    gone = await purged(apps, method, f"{place}{whose}")

    assert (gone.status_code, gone.json()["deletedCount"]) == (200, 4 - len(left))
    assert [each.content for each in apps.known] == left


class _AwayForOne(Apps):
    """The log takes commands for all users but Cy, and nobody carries them out."""

    async def send(self, command: Any) -> Position:
        self.fails = DeliveryFailed("cannot reach Kafka.") if command.user_id == "cy" else None
        return await super().send(command)


async def test_a_purge_that_fails_for_one_user_is_not_told_as_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the log for Anna comes; for Cy there is nothing to come."""
    monkeypatch.setattr(commands, "WAIT_S", 0.0)
    apps = _AwayForOne([], [space("a", user) for user in ("anna", "cy", "dan")], away=True)
    failed = await purged(apps, "DELETE", "memories")

    assert (failed.status_code, failed.json()["code"], failed.headers["retry-after"]) == (503, "log_unavailable", "2")
    assert [each.user_id for each in apps.sent] == ["anna", "dan"]


@pytest.mark.parametrize(("method", "place"), [("DELETE", "memories"), ("POST", "uninstall")])
async def test_an_app_of_too_many_users_is_not_purged_in_part(method: str, place: str) -> None:
    """It is said what to do instead, and nothing is written."""
    apps = Apps([memory(1, "All.")], [space("a", f"u{n}") for n in range(101)])
    refused = await purged(apps, method, place)

    assert (refused.status_code, refused.json()["errors"][0]["field"], apps.sent) == (422, "user_id", [])
