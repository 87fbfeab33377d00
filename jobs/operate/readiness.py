"""Lines of `turntide worker all` while it starts: each role once it is ready, and all of them, with the addresses."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from time import monotonic

import httpx

from models.events.topics import TURNS
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
    further: Mapping[str, str] | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> None:
    """Ask the roles at their ports until all are ready or `stop` is set, however long that takes.

    A role whose port changes at each start (0 in the settings) cannot be asked: it is named in the end. The last line
    is followed by the addresses, and by what else there is to say, one a line.
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
        told = {**_addresses(settings, places), **(further or {})}
        lines = [
            f"ready after {monotonic() - began_s:.0f} s",
            *(f"  {what:<10}{where}" for what, where in told.items()),
        ]
        say("\n".join(lines))


async def _reason(client: httpx.AsyncClient, url: str) -> str:
    """Why a role is not ready, in its own words; empty if it is."""
    try:
        answer = await client.get(f"{url}/readyz")
    except httpx.HTTPError:
        return "does not answer yet"
    return "" if answer.is_success else answer.text or f"status {answer.status_code}"


def _addresses(settings: Settings, places: Mapping[str, str | None]) -> dict[str, str]:
    told = {}
    if (serving := places.get("index")) is not None:
        if settings.live.enabled:
            told["live page"] = f"{serving}{LIVE_PAGE}"
        told["memory"] = f"{serving}/docs"
    told["Kafka"] = f"{settings.kafka.bootstrap}, turns go to {TURNS.full_name(settings.topic_prefix)}"
    if unknown := [role for role, url in places.items() if url is None]:
        told["not asked"] = f"{', '.join(unknown)}: the port is 0 in the settings"
    return told
