"""The live page on a real log: from turns to rows, from a click to the alert that says so, and gone when erased."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

import httpx
import msgspec
import pytest
from qdrant_client import AsyncQdrantClient

from models.events import SessionErased, SessionName
from models.policy import Policy
from streams.api.assembly import memory_api
from streams.api.commands import KafkaCommands
from streams.api.live.service import LivePage
from streams.http.health import serve
from streams.index.server import ServerStore
from streams.settings import ScorerSettings, Settings
from streams.settings.http import HttpSettings
from streams.settings.live import LiveSettings
from tests.support.fault_driver import _loaded, recorded, said, send, sessions_role
from tests.support.http_api import api_of

SESSION = "page/<b>1</b>"
NAMED = SessionName(said(0).app_id, SESSION)


class Events:
    """Server-sent events of an answer, looked through for what is waited for."""

    def __init__(self, answer: httpx.Response) -> None:
        self.ended = False
        self._lines: AsyncIterator[str] = answer.aiter_lines()

    async def until(self, holds: Callable[[str, dict[str, Any]], bool]) -> dict[str, Any]:
        """The data of the first event from here on that holds."""
        name = ""
        async with asyncio.timeout(60):
            async for line in self._lines:
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    data: dict[str, Any] = msgspec.json.decode(line.removeprefix("data: "))
                    if holds(name, data):
                        return data
        self.ended = True
        return {}


def told(**fields: Any) -> Callable[[str, dict[str, Any]], bool]:
    """Whether an event tells of the session's alert with these fields."""
    wanted = {"session_id": SESSION, **fields}
    return lambda _, data: any(wanted.items() <= each.items() for each in data.get("alerts", ()))


@pytest.mark.behaviour("card-07")
async def test_a_session_is_watched_from_its_first_turn_to_its_erasure(settings: Settings, topic_prefix: str) -> None:
    """Its row, its alert, the acknowledgement and the label that were clicked, its role's lag; then nothing of it."""
    live = LiveSettings(roles={"sessions": "http://127.0.0.1:1"})
    settings = settings.model_copy(
        update={"live": live, "http": HttpSettings(mcp=False), "scorer": ScorerSettings(kind="rules")}
    )
    commands = KafkaCommands(settings)
    page = LivePage(settings, commands)
    store = ServerStore(AsyncQdrantClient(":memory:"), embedder="wordllama")
    served = memory_api(store, _loaded("wordllama"), Policy(), settings.http, topic_prefix=topic_prefix, live=page)
    api = api_of(served.routes, endpoints=served.endpoints, http=settings.http)
    async with sessions_role(settings), httpx.AsyncClient(timeout=60) as client:
        async with AsyncExitStack() as serving:
            port = await serving.enter_async_context(serve(api))
            client.base_url = httpx.URL(f"http://127.0.0.1:{port}/v1/live/")
            async with client.stream("GET", "stream") as answer:
                events = Events(answer)
                first = await events.until(lambda name, _: name == "snapshot")
                await send(settings, [recorded(said(n, session_id=SESSION, risk=0.95)) for n in range(12)])
                rows = await events.until(lambda _, data: bool(data.get("sessions")))
                if not page.board.alerts(NAMED):
                    await events.until(told(status="firing"))
                (known,) = page.board.alerts(NAMED)
                said_of = f"alerts/{known.event.alert_id}"
                written = [
                    await client.post(f"{said_of}/acknowledge", json={"session_id": SESSION}),
                    await client.post(f"{said_of}/label", json={"session_id": SESSION, "label": True}),
                ]
                acknowledged = await events.until(told(status="acknowledged", label=True))
                labelled = page.board.alert(known.event.alert_id)
                lag = await events.until(lambda name, data: name == "roles" and data["roles"][0]["lag_records"] == 0)
                erased = SessionErased(session_id=SESSION, timestamp=datetime.now(UTC), request_id="r")
                await send(settings, [recorded(erased)])
                gone = await events.until(lambda _, data: SESSION in data.get("gone", ()))
                refused = await client.post(f"{said_of}/label", json={"session_id": SESSION, "label": False})
                ending = asyncio.ensure_future(events.until(lambda *_: False))
                await asyncio.sleep(0)
                await serving.aclose()
                await ending
        await commands.close()
    await store.close()

    assert (first["sessions"], first["more"]) == ([], False)
    assert [(SESSION, "u")] == [(row["session_id"], row["user_id"]) for row in rows["sessions"]]
    assert [202, 202] == [deed.status_code for deed in written]
    assert acknowledged["alerts"][-1]["cause"] == "acknowledged"
    assert labelled is not None
    assert labelled.label is True
    assert lag["roles"][0]["state"] == "away"
    assert gone["gone"] == [SESSION]
    assert (refused.status_code, len(page.board)) == (404, 0)
    assert events.ended
