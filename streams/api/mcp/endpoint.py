"""Tools over HTTP. Their package takes half a second of processor time to import: not before the first request."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Scope, Send

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

PATH = "/mcp"


class McpEndpoint:
    """The tools at `/mcp`.

    Args:
        memory: What the tools ask, in the order of `streams.api.mcp.tools.AskedMemory`.
        loopback: Whether only this machine can connect. Then the host and origin of a request must be this machine,
            so that no page elsewhere reaches it (DNS rebinding); beyond it the token says who asks.
        max_body_bytes: Of a request.
    """

    path = PATH

    def __init__(self, *memory: Any, loopback: bool = True, max_body_bytes: int = 64 * 1024) -> None:
        self._memory = memory
        self._limits: dict[str, Any] = {"loopback": loopback, "max_body_bytes": max_body_bytes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        server = await asyncio.to_thread(lambda: self._server)
        from streams.api.mcp.server import manager_of  # noqa: PLC0415 - imported in that thread

        manager = manager_of(server, **self._limits)
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Nothing runs between requests."""
        return nullcontext()

    @cached_property
    def _server(self) -> Server[dict[str, Any]]:
        from streams.api.mcp.server import memory_server  # noqa: PLC0415 - extra `mcp`
        from streams.api.mcp.tools import AskedMemory  # noqa: PLC0415 - likewise

        return memory_server(AskedMemory(*self._memory))
