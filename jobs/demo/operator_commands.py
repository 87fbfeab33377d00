"""Operator's commands at the end of the demo, over HTTP: purge the memories of an app, and erase a user."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
import msgspec
from msgspec import Struct

from models.events import ErasedStore, ErasureProved
from streams.http.route import path_part

PURGED_APP = "isp-support"
ERASED_USER, ERASED_USERS_APP = "user-edith", "assistant"
"""Somebody whose conversation became a memory of the app."""
_ANSWER_WITHIN_S = 15.0
_PROOF_WITHIN_S = 120.0
_LOOK_AGAIN_S = 0.5


class PurgedApp(Struct, frozen=True, kw_only=True):
    """All memories of an app, taken away."""

    app_id: str
    deleted: int = 0
    left: int = 0
    """What a read finds right after it."""
    milliseconds: float = 0.0
    problems: list[str] = []


class Erased(Struct, frozen=True, kw_only=True):
    """A user, forgotten, with the proof."""

    app_id: str
    user_id: str
    request_id: str = ""
    seconds: float = 0.0
    sessions: int = 0
    complete: bool = False
    """Whether nothing remains; else what remains expires by itself."""
    stores: list[ErasedStore] = []
    problems: list[str] = []


async def purge(app_id: str, url: str, *, transport: httpx.AsyncBaseTransport | None = None) -> PurgedApp:
    """Delete all memories of an app, and read at once.

    Args:
        app_id: Whose.
        url: Of the index role.
        transport: How it is reached; None: over the network.
    """
    place = f"/apps/{path_part(app_id)}/memories"
    began_s = time.monotonic()
    try:
        async with httpx.AsyncClient(base_url=url, timeout=_ANSWER_WITHIN_S, transport=transport) as client:
            deleted = int((await _asked(client, "DELETE", place))["deletedCount"])
            took_ms = round((time.monotonic() - began_s) * 1_000, 1)
            left = len((await _asked(client, "GET", place))["memories"])
    except (httpx.HTTPError, msgspec.MsgspecError, LookupError) as error:
        return PurgedApp(app_id=app_id, problems=[f"purging its memories failed: {type(error).__name__}"])
    problems = ([] if deleted else ["had no memory to purge"]) + (["a purged memory was read again"] if left else [])
    return PurgedApp(app_id=app_id, deleted=deleted, left=left, milliseconds=took_ms, problems=problems)


async def erase(app_id: str, user_id: str, url: str, *, transport: httpx.AsyncBaseTransport | None = None) -> Erased:
    """Erase a user of an app, and wait for the proof.

    Args:
        app_id: The user's app.
        user_id: Who is to be forgotten.
        url: Of the index role.
        transport: How it is reached; None: over the network.
    """
    began_s = time.monotonic()
    try:
        async with httpx.AsyncClient(base_url=url, timeout=_ANSWER_WITHIN_S, transport=transport) as client:
            asked = await _asked(client, "POST", "/v1/erase", {"app_id": app_id, "user_id": user_id})
            proof = await _proof(client, str(asked["request_id"]))
    except (httpx.HTTPError, msgspec.MsgspecError, LookupError) as error:
        return Erased(app_id=app_id, user_id=user_id, problems=[f"erasing failed: {type(error).__name__}"])
    except TimeoutError:
        return Erased(
            app_id=app_id, user_id=user_id, problems=[f"no proof of the erasure within {_PROOF_WITHIN_S:g} s"]
        )
    kept = [each.store for each in proof.stores if each.remaining and each.expires_at is None]
    return Erased(
        app_id=app_id,
        user_id=user_id,
        request_id=proof.request_id,
        seconds=round(time.monotonic() - began_s, 1),
        sessions=proof.sessions,
        complete=proof.complete,
        stores=proof.stores,
        problems=[f"{store} still holds what was erased" for store in kept],
    )


async def _proof(client: httpx.AsyncClient, request_id: str) -> ErasureProved:
    async with asyncio.timeout(_PROOF_WITHIN_S):
        while True:
            answer = await _asked(client, "GET", f"/v1/erase/{request_id}")
            if answer.get("proof"):
                return msgspec.convert(answer["proof"], ErasureProved)
            await asyncio.sleep(_LOOK_AGAIN_S)


async def _asked(
    client: httpx.AsyncClient, method: str, place: str, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    response = await client.request(method, place, json=body)
    response.raise_for_status()
    return msgspec.json.decode(response.content, type=dict[str, Any])
