"""A Qdrant server of our own for tests: the REST calls that `ServerStore` makes, kept in a dict, failing as told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from enum import StrEnum
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from streams.http.health import serve

HOST = "127.0.0.1"
SLOW_S = 5.0


class Fault(StrEnum):
    """What is wrong with the server."""

    NONE = "none"
    ERRORS = "5xx"
    SLOW = "slow"
    DOWN = "down"


class StandIn:
    """The server; `become` changes what is wrong with it.

    Attributes:
        points: Id → payload of everything that was upserted.
        refused: Requests that were answered by an error or too late.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.points: dict[str, dict[str, Any]] = {}
        self.refused = 0
        self._collections: dict[str, dict[str, Any]] = {}
        self._fault = Fault.DOWN
        self._serving = AsyncExitStack()
        calls = (
            ("GET", "/exists", self._exists),
            ("GET", "", self._describe),
            ("PUT", "", self._create),
            ("PUT", "/index", self._index),
            ("PUT", "/points", self._upsert),
            ("POST", "/points/count", self._count),
        )
        self._api = Starlette(
            routes=[
                Route(f"/collections/{{name}}{end}", partial(self._answer, call), methods=[method])
                for method, end, call in calls
            ]
        )

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{HOST}:{self.port}"

    async def become(self, fault: Fault) -> None:
        """Change what is wrong; a server that is down closes its port."""
        was_down, self._fault = self._fault is Fault.DOWN, fault
        if fault is Fault.DOWN:
            await self._serving.aclose()
        elif was_down:
            await self._serving.enter_async_context(serve(self._api, HOST, self.port))

    async def _answer(self, call: Callable[[str, Request], Awaitable[dict[str, Any]]], request: Request) -> Response:
        if self._fault is Fault.NONE:
            return JSONResponse(await call(request.path_params["name"], request))
        self.refused += 1
        if self._fault is Fault.SLOW:
            await asyncio.sleep(SLOW_S)
        return JSONResponse({"status": {"error": "as told"}, "time": 0.0}, 503)

    async def _exists(self, name: str, _request: Request) -> dict[str, Any]:
        return _result({"exists": name in self._collections})

    async def _describe(self, name: str, _request: Request) -> dict[str, Any]:
        wanted = self._collections[name]
        config = {
            "params": {"vectors": wanted["vectors"], "sparse_vectors": wanted.get("sparse_vectors")},
            "hnsw_config": {"m": 0, "ef_construct": 100, "full_scan_threshold": 10_000},
            "optimizer_config": {"deleted_threshold": 0.2, "vacuum_min_vector_number": 1, "default_segment_number": 0,
                                 "flush_interval_sec": 5},
            "metadata": wanted["metadata"],
        }  # fmt: skip
        described = {"status": "green", "optimizer_status": "ok", "segments_count": 1, "payload_schema": {}}
        return _result({**described, "config": config})

    async def _create(self, name: str, request: Request) -> dict[str, Any]:
        self._collections[name] = await request.json()
        return _result(True)

    async def _index(self, name: str, _request: Request) -> dict[str, Any]:
        assert name in self._collections
        return _result({"operation_id": 0, "status": "completed"})

    async def _upsert(self, name: str, request: Request) -> dict[str, Any]:
        assert name in self._collections
        self.points |= {str(point["id"]): point["payload"] for point in (await request.json())["points"]}
        return _result({"operation_id": 0, "status": "completed"})

    async def _count(self, name: str, _request: Request) -> dict[str, Any]:
        assert name in self._collections
        return _result({"count": len(self.points)})


def _result(result: Any) -> dict[str, Any]:
    return {"result": result, "status": "ok", "time": 0.0}


@asynccontextmanager
async def standing_in(port: int) -> AsyncIterator[StandIn]:
    """A server that works until told otherwise."""
    server = StandIn(port)
    await server.become(Fault.NONE)
    try:
        yield server
    finally:
        await server.become(Fault.DOWN)
