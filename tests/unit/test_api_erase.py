"""Erasures over HTTP: who may ask for whose, what is written, and the proof."""

from typing import Any

import httpx
import pytest
from msgspec import structs

from models.policy.app import AppPolicy
from streams.api.assembly import admin_routes
from tests.support.api_apps import Apps, Sessions
from tests.support.api_doubles import Served, bearer, said, settings_of
from tests.support.data_files import data_file
from tests.support.http_api import api_of, client_of


@pytest.mark.parametrize(
    ("body", "scope"),
    [
        ({"user_id": "u", "app_id": "a"}, "user"),
        ({"user_id": "u"}, "user"),
        ({"session_id": "s", "app_id": "a"}, "session"),
        ({"app_id": "a", "purge_logs": True}, "app"),
    ],
)
async def test_an_erasure_is_asked_for(
    served: Served, client: httpx.AsyncClient, body: dict[str, Any], scope: str
) -> None:
    """202, once it is in the log with who asked; and where its proof will be."""
    answer = await client.post("/v1/erase", json=body)
    (wanted,) = served.erasures.asked
    named = {name: value for name, value in structs.asdict(wanted).items() if value}

    assert (answer.status_code, answer.headers["location"]) == (202, f"/v1/erase/{wanted.request_id}")
    assert answer.json() == {"request_id": wanted.request_id, "scope": scope, "status": answer.headers["location"]}
    assert named == {
        "request_id": wanted.request_id,
        "timestamp": wanted.timestamp,
        "scope": scope,
        "by": "local",
        **body,
    }


@pytest.mark.parametrize(
    ("session", "whose"),
    [("only", "b"), ("of-two", "ambiguous_app"), ("of-the-default-app", "default"), ("unknown", "invalid_request")],
)
async def test_whose_session_is_erased_where_no_app_is_named(
    served: Served, client: httpx.AsyncClient, session: str, whose: str
) -> None:
    """The default app's, or the only one that is indexed; never of two, and never of nobody knows whom."""
    await served.say(
        *(said(0, "x", app="b", session=each) for each in ("only", "of-two", "of-the-default-app")),
        *(said(0, "x", app=app, session=each) for app, each in (("a", "of-two"), ("default", "of-the-default-app"))),
    )
    answer = await client.post("/v1/erase", json={"session_id": session})
    asked = [each.app_id for each in served.erasures.asked]

    assert [whose] == (asked or [answer.json()["code"]])
    assert (answer.status_code == 202) == bool(asked)


@pytest.mark.parametrize(("body", "status"), data_file("api_erase")["admins"])
async def test_an_admin_of_some_apps_erases_those(body: dict[str, Any], status: int) -> None:
    """Not a user or session in other tenants' apps, or logs that hold everybody's; a session is their own app's."""
    made = Served(settings=settings_of("a", admin=True))
    async with made.client(bearer("a")) as client:
        answer = await client.post("/v1/erase", json=body)

    assert (answer.status_code, [each.app_id for each in made.erasures.asked]) == (status, ["a"] * (status == 202))


async def test_a_role_that_only_reads() -> None:
    """503 for whatever writes, and who does it; reading goes on."""
    apps = Apps()
    routes = admin_routes(apps, AppPolicy(), None, None, Sessions())
    async with client_of(api_of(routes)) as client:
        writing = [
            await client.post("/v1/erase", json={"user_id": "u"}),
            await client.get("/v1/erase/r"),
            await client.delete("/apps/a/memories"),
            await client.put("/apps/a/memories/1", json={"pinned": True}),
        ]
        reading = await client.get("/apps/a/memories")

    assert [(each.status_code, each.json()["code"]) for each in writing] == [(503, "read_only")] * 4
    assert reading.status_code == 200
