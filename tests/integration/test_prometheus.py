"""The rules and the routing on the real Prometheus and Alertmanager, from a role's metrics to who is told."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from pydantic import SecretStr

from jobs.alerts.command import harmless_alert
from models.events import AlertStatus, Severity
from models.policy import NotifyPolicy
from streams.http.health import serve
from streams.notify.delivery import Poster
from streams.notify.forms import ALERTMANAGER_PATH, FormSink, postable, teller
from streams.observe.telemetry import Metrics
from streams.settings.http import ApiToken, HttpSettings, TokenRole
from tests.support import fault_driver
from tests.support.http_api import api_of
from tests.support.tools import tool
from tests.support.watching import Receiver, Told, alertmanager, prometheus, receiving

TOKEN = "scrapes-and-nothing-else"  # noqa: S105 - of this test alone
DEADLINE_S = 20.0
ROLES = ("sessions", "sessions", "memory", "index")


async def until(look: Callable[[], Any]) -> Any:
    """What `look` finds, as soon as it finds something; it looks from a thread, since the roles are served here."""
    return await fault_driver.until(lambda: asyncio.to_thread(look), "what is looked for", within_s=DEADLINE_S)


@pytest.fixture
def told() -> Iterator[Receiver]:
    """Who is told."""
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def routing(tmp_path: Path, told: Receiver) -> Iterator[str]:
    """Address of a real Alertmanager with the project's routes."""
    with alertmanager(tmp_path, told.url) as url:
        yield url


@pytest.fixture
async def roles() -> AsyncIterator[list[tuple[int, str, Metrics]]]:
    """Workers that serve what they count, each with a registry of its own, to an admin alone."""
    token = ApiToken(token=SecretStr(TOKEN), role=TokenRole.ADMIN)
    http = HttpSettings(host="0.0.0.0", tokens=[token])  # noqa: S104 - only to have /metrics guarded
    async with AsyncExitStack() as stack:
        served = []
        for name in ROLES:
            counted = Metrics()
            counted.gauge("ready").set(1)
            api = api_of(registry=counted.registry, http=http)
            served.append((await stack.enter_async_context(serve(api)), name, counted))
        yield served


async def amtool(url: str, *words: str) -> str:
    """What amtool says."""
    command = [str(tool("amtool")), "--alertmanager.url", url, *words]
    done = await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, text=True)
    return str(done.stdout).strip()


def states(url: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Alertmanager's word on each alert: by name and role."""
    alerts = httpx.get(f"{url}/api/v2/alerts").json()
    return {(alert["labels"]["alertname"], alert["labels"].get("job", "")): alert["status"] for alert in alerts}


async def test_from_a_metric_to_who_is_told(
    tmp_path: Path, told: Receiver, routing: str, roles: list[tuple[int, str, Metrics]]
) -> None:
    """Two workers, one page; a silence holds it back and lets it go; who is told also hears that it is over."""
    first, second, memory, index = (counted.gauge("ready") for _, _, counted in roles)
    with prometheus(tmp_path, routing, {port: role for port, role, _ in roles}, TOKEN) as asked:
        await until(lambda: _value(asked, "sum(turntide_ready)") == len(ROLES))
        first.set(0)
        second.set(0)
        (page,) = await until(lambda: told.of("turntide-sessions"))
        instances = sorted(f"127.0.0.1:{port}" for port, role, _ in roles if role == "sessions")

        assert page.path == "/page"
        assert page.body["status"] == "firing"
        assert page.names() == [("TurntideNotReady", "turntide-sessions", instance) for instance in instances]
        assert page.body["commonAnnotations"]["runbook_url"] == "deploy/runbooks/TurntideNotReady.md"

        silence = await amtool(
            routing,
            *("silence", "add", "alertname=TurntideNotReady", "job=turntide-memory"),
            *("--comment=known", "--author=test", "--duration=1h"),
        )
        memory.set(0)
        await until(lambda: states(routing).get(("TurntideNotReady", "turntide-memory"), {}).get("silencedBy"))
        index.set(0)  # it comes later, and nobody silenced it: when it is told of, the other would have been
        await until(lambda: told.of("turntide-index"))
        assert told.of("turntide-memory") == []
        await amtool(routing, "silence", "expire", silence)
        (loud,) = await until(lambda: told.of("turntide-memory"))
        assert loud.body["status"] == "firing"

        first.set(1)
        second.set(1)
        await until(lambda: told.of("turntide-sessions")[-1].body["status"] == "resolved")
        resolved = {name for each in told.of("turntide-sessions") for name in each.of_status("resolved")}
        assert sorted(resolved) == page.names()


def _value(url: str, expression: str) -> float:
    result = httpx.get(f"{url}/api/v1/query", params={"query": expression}).json()["data"]["result"]
    return float(result[0]["value"][1]) if result else 0.0


async def test_an_absent_role_explains_what_follows_from_it(told: Receiver, routing: str) -> None:
    """Whoever is woken for the role is not woken for its lag too; another role's lag is told of, as a ticket."""
    job, other = "job=turntide-sessions", "job=turntide-index"
    await amtool(routing, "alert", "add", "TurntideRoleAway", "severity=page", job)
    await amtool(routing, "alert", "add", "TurntideBacklog", "severity=ticket", job)
    await amtool(routing, "alert", "add", "TurntideBacklog", "severity=ticket", other)
    await until(lambda: len(told.told) == 2)
    found = states(routing)

    assert {(each.path, name) for each in told.told for name, _, _ in each.names()} == {
        ("/page", "TurntideRoleAway"),
        ("/ticket", "TurntideBacklog"),
    }
    assert found["TurntideBacklog", "turntide-sessions"]["inhibitedBy"] != []
    assert found["TurntideBacklog", "turntide-index"]["inhibitedBy"] == []


async def test_alerts_on_sessions_reach_their_own_receiver(told: Receiver, routing: str) -> None:
    """Turntide's sink on the real thing: raised, worse (the milder one ends), resolved; and never a page."""
    sink = FormSink(
        "alertmanager", Poster("alertmanager", routing + ALERTMANAGER_PATH), teller(NotifyPolicy()), postable
    )
    raised = harmless_alert(datetime.now(UTC))
    worse = msgspec.structs.replace(
        raised, id="2", severity=Severity.CRITICAL, cause="worsened", timestamp=raised.timestamp + timedelta(seconds=1)
    )
    await sink.deliver([raised])
    await until(lambda: told.told)
    await sink.deliver([worse])
    await until(lambda: _told_of(told.told, "critical", "firing"))
    await until(lambda: _told_of(told.told, "warning", "resolved"))
    await sink.deliver([msgspec.structs.replace(worse, id="3", status=AlertStatus.RESOLVED, cause="resolved")])
    await until(lambda: _told_of(told.told, "critical", "resolved"))
    await sink.close()

    assert {each.path for each in told.told} == {"/sessions"}
    assert {each.body["groupKey"] for each in told.told} == {told.told[0].body["groupKey"]}
    assert told.told[0].body["alerts"][0]["annotations"]["session_id"] == raised.session_id
    assert raised.session_id not in json.dumps(told.told[0].body["groupLabels"]).replace(raised.app_id, "")


def _told_of(told: list[Told], severity: str, status: str) -> bool:
    """Whether somebody heard that an alert of this severity is in this state."""
    return any(
        (alert["labels"]["severity"], alert["status"]) == (severity, status)
        for each in told
        for alert in each.body["alerts"]
    )
