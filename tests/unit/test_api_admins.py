"""Who may do what admins do: no token, one that is no admin's, one of some apps, and pages of other sites."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.api_apps import memory
from tests.api_doubles import Served, bearer, settings_of


@pytest.fixture(scope="module")
def guarded() -> Served:
    """A role with a token that is no admin's, one of an admin of app `a`, and one of an admin of all apps."""
    tokens = [ApiToken(token=SecretStr("a-token-of-an-admin-of-all"), role=TokenRole.ADMIN, name="ops")]
    plain, admin = settings_of("a"), settings_of("admin-of-a", admin=True)
    (bound,) = admin.tokens
    tokens += [*plain.tokens, bound.model_copy(update={"apps": ["a", "c"]})]
    made = Served(settings=HttpSettings(tokens=tokens))
    made.apps.known += [memory(1, "secret", app=app) for app in ("a", "b")]
    return made


async def test_an_admin_of_some_apps(guarded: Served) -> None:
    """Its own apps only: to read, to write, and to share with; its name is in the audit."""
    async with guarded.client(bearer("admin-of-a")) as client:
        own = await client.get("/apps/a/memories")
        other = [await client.request(method, "/apps/b/memories") for method in ("GET", "DELETE")]
        shared = [await client.put("/apps/a/memories/1", json={"sharedWith": [app]}) for app in ("b", "c")]

    assert (own.status_code, [each.status_code for each in other]) == (200, [403, 403])
    assert [each.status_code for each in shared] == [403, 200]
    assert [(each.app_id, each.by) for each in guarded.apps.sent] == [("a", "admin-admin-of-a")]


async def test_a_page_of_another_site_writes_nothing() -> None:
    """Without tokens a browser on this machine would send it without asking; our own pages and programs may."""
    made = Served(settings=HttpSettings())
    made.apps.known.append(memory(1, "kept"))
    async with made.client() as client:
        path, body = "/apps/a/uninstall", '{"purgeMemories": true}'
        origins = ("https://evil.example", "null", "http://[", "http://127.0.0.1:8702")
        codes = [(await client.post(path, content=body, headers={"Origin": each})).status_code for each in origins]
        written = [(method, "/apps/a/memories/1") for method in ("PUT", "PATCH", "DELETE")]
        others = [(await client.request(*each, headers={"Origin": origins[0]})).status_code for each in written]

    assert (codes, others) == ([403, 403, 403, 200], [403] * 3)
    assert len(made.apps.sent) == 1
