"""A Qdrant server store on the client's in-memory imitation whose every call is also prepared for both wires.

What the client would send by REST and by gRPC is made by its own code up to the connection and is valid for the types
of both: the imitation takes more than a server does.
"""

from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from httpx import Request
from qdrant_client import AsyncQdrantClient
from qdrant_client.async_qdrant_remote import AsyncQdrantRemote

from streams.index.server import ServerStore

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class _Sent(Exception):  # noqa: N818 - it says what happened
    """A request is complete and would go out now."""


class _Stubs:
    """Methods of a gRPC service that go no further than their request."""

    def __getattr__(self, method: str) -> Callable[..., Awaitable[None]]:
        async def call(request: Any, **_options: Any) -> None:
            raise _Sent(method, request.SerializeToString())

        return call


async def _rest_sent(request: Request, _send: Any) -> Any:
    raise _Sent(request.method, request.read())


class WireCheckedStore(ServerStore):
    """As `ServerStore`, in memory.

    Attributes:
        sent: Names of the client's methods whose requests were prepared for both wires.
    """

    def __init__(self, *, embedder: str) -> None:
        super().__init__(AsyncQdrantClient(":memory:"), embedder=embedder)
        self.sent: set[str] = set()
        self._wires = [
            AsyncQdrantClient(url="http://127.0.0.1:1", prefer_grpc=by_grpc, check_compatibility=False)
            for by_grpc in (False, True)
        ]
        rest, by_grpc = (wire._client for wire in self._wires)
        assert isinstance(rest, AsyncQdrantRemote)
        assert isinstance(by_grpc, AsyncQdrantRemote)
        rest.openapi_client.client.add_middleware(_rest_sent)
        by_grpc._grpc_points_client_pool = [_Stubs()] * 3  # type: ignore[list-item]
        by_grpc._grpc_collections_client_pool = [_Stubs()] * 3  # type: ignore[list-item]

    async def close(self) -> None:
        """Release all three clients."""
        await super().close()
        for wire in self._wires:
            await wire.close()

    async def _call(
        self, request: Callable[_Arguments, Awaitable[_Result]], *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> _Result:
        name = request.__name__
        for wire in self._wires:
            try:
                await getattr(wire, name)(*args, **kwargs)
            except _Sent:
                continue
            raise AssertionError(f"{name} sent nothing")
        self.sent.add(name)
        return await super()._call(request, *args, **kwargs)
