"""Lines of `turntide worker all` while it starts: each role once it is ready, and all of them, with the addresses."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from time import monotonic

import httpx

from streams.settings import Settings
from streams.settings.live import LIVE_PAGE

_LOOK_AGAIN_S = 0.5
_SAY_AGAIN_S = 30.0
_ANSWER_WITHIN_S = 5.0


async def tell_ready(
    settings: Settings,
    roles: Iterable[str],
    stop: asyncio.Event,
    say: Callable[[str], None],
    *,
    transport: httpx.AsyncBaseTransport | None = None,
) -> None:
    """Ask the roles at their ports until all are ready or `stop` is set, however long that takes.

    A role whose port changes at each start (0 in the settings) cannot be asked: it is named in the end.
    """
    places = {role: settings.http.url_of(role) for role in roles}
    waiting = {role: url for role, url in places.items() if url is not None}
    began_s = told_s = monotonic()
    async with httpx.AsyncClient(trust_env=False, timeout=_ANSWER_WITHIN_S, transport=transport) as client:
        while waiting and not stop.is_set():
            reasons = {role: await _reason(client, url) for role, url in waiting.items()}
            for role in [role for role, reason in reasons.items() if not reason]:
                say(f"worker {role} is ready: {waiting.pop(role)}")
            if waiting and monotonic() - told_s >= _SAY_AGAIN_S:
                told_s = monotonic()
                say("not ready yet: " + "; ".join(f"{role} ({reasons[role]})" for role in waiting))
            if waiting:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_AGAIN_S):
                        await stop.wait()
    if not waiting:
        say(f"ready after {monotonic() - began_s:.0f} s: {_addresses(settings, places)}")


async def _reason(client: httpx.AsyncClient, url: str) -> str:
    """Why a role is not ready, in its own words; empty if it is."""
    try:
        answer = await client.get(f"{url}/readyz")
    except httpx.HTTPError:
        return "does not answer yet"
    return "" if answer.is_success else answer.text or f"status {answer.status_code}"


def _addresses(settings: Settings, places: Mapping[str, str | None]) -> str:
    parts = []
    if (serving := places.get("index")) is not None:
        live = [f"live page {serving}{LIVE_PAGE}"] if settings.live.enabled else []
        parts = [*live, f"memory {serving}/docs"]
    if unknown := [role for role, url in places.items() if url is None]:
        parts.append(f"not asked, as their port is 0 in the settings: {', '.join(unknown)}")
    return ", ".join([*parts, f"Kafka {settings.kafka.bootstrap}"])
