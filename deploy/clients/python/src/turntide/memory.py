"""`Memory` and `AsyncMemory`: the same calls, carried out by two kinds of HTTP client."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

import httpx

from turntide.calls import NO_ANSWER, Answer, Calls, Pause, Request, Steps

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Client = TypeVar("_Client", httpx.Client, httpx.AsyncClient)
_Call = Callable[Concatenate[Calls, _P], Steps[_T]]
_HERE = "http://127.0.0.1:8702"
_NOTHING = Answer(NO_ANSWER, b"")


class _Face(Generic[_Client]):
    """What both have in common: where the server is, in whose name it is asked, and how often.

    Args:
        url: Where the server answers; none: as TURNTIDE_URL says, else this machine.
        app: Id of the app. Users of two apps are never the same.
        token: Bearer token, where the server has tokens; none: as TURNTIDE_TOKEN says.
        write_url: Where turns go, if gateways have an address of their own; none: as TURNTIDE_WRITE_URL says, else
            `url`.
        timeout_s: Time limit of one request in seconds; waiting for a turn adds to it.
        retries: How often a request is repeated after no response, or 429, 502 or 503.
        http: A client of your own (TLS, proxies); it stays yours to close.
    """

    def __init__(
        self,
        url: str | None = None,
        app: str = "default",
        token: str | None = None,
        *,
        write_url: str | None = None,
        timeout_s: float = 10.0,
        retries: int = 4,
        http: _Client | None = None,
    ) -> None:
        self.app = app
        self._url = (url or os.environ.get("TURNTIDE_URL") or _HERE).rstrip("/")
        self._write_url = (write_url or url or os.environ.get("TURNTIDE_WRITE_URL") or self._url).rstrip("/")
        token = token or os.environ.get("TURNTIDE_TOKEN")
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout_s = timeout_s
        self._calls = Calls(app, retries)
        self._owns = http is None
        self._http: _Client = self._opened() if http is None else http

    def _opened(self) -> _Client:
        raise NotImplementedError

    def session_of(self, user_id: str) -> str:
        """The session that this object has with a user where none is named."""
        return self._calls.session_of(user_id)

    def _sent(self, request: Request) -> dict[str, Any]:
        return {
            "method": request.method,
            "url": f"{self._write_url if request.writes else self._url}{request.path}",
            "params": request.query,
            "content": None if request.body is None else json.dumps(request.body, default=_as_text).encode(),
            "headers": self._headers,
            "timeout": self._timeout_s + request.waits_s,
        }

    @staticmethod
    def _came(response: httpx.Response) -> Answer:
        return Answer(response.status_code, response.content, response.headers.get("Retry-After", ""))

    def _missing(self, error: httpx.HTTPError, request: Request) -> Answer:
        url = self._write_url if request.writes else self._url
        return Answer(NO_ANSWER, f"{url} does not answer ({type(error).__name__}): is `turntide` running?".encode())


def _sync(call: _Call[_P, _T]) -> Callable[Concatenate[Memory, _P], _T]:
    @wraps(call)
    def method(self: Memory, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return self._carried_out(call(self._calls, *args, **kwargs))

    return method


def _async(call: _Call[_P, _T]) -> Callable[Concatenate[AsyncMemory, _P], Coroutine[Any, Any, _T]]:
    @wraps(call)
    async def method(self: AsyncMemory, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await self._carried_out(call(self._calls, *args, **kwargs))

    return method


class Memory(_Face[httpx.Client]):
    """Memory of an app's users.

    Args: see `help(turntide.Memory.__init__)`.

    >>> with Memory("http://127.0.0.1:8702", app="shop") as memory:  # doctest: +SKIP
    ...     memory.add("My name is Alex.", user_id="u-1", wait="visible")
    ...     print(memory.context("What is my name?", user_id="u-1").prompt)
    """

    def _opened(self) -> httpx.Client:
        return httpx.Client()

    add = _sync(Calls.add)
    end = _sync(Calls.end)
    search = _sync(Calls.search)
    context = _sync(Calls.context)
    facts = _sync(Calls.facts)
    episodes = _sync(Calls.episodes)
    recent = _sync(Calls.recent)
    turns = _sync(Calls.turns)
    segments = _sync(Calls.segments)
    profile = _sync(Calls.profile)
    app_of = _sync(Calls.app_of)
    forget = _sync(Calls.forget)
    set_fact = _sync(Calls.set_fact)
    pin_fact = _sync(Calls.pin_fact)
    delete_fact = _sync(Calls.delete_fact)
    set_memory_mode = _sync(Calls.set_memory_mode)

    def _carried_out(self, steps: Steps[_T]) -> _T:
        answer: Answer | None = None
        try:
            while True:
                step = next(steps) if answer is None else steps.send(answer)
                answer = self._done(step)
        except StopIteration as end:
            returned: _T = end.value
            return returned

    def _done(self, step: Request | Pause) -> Answer:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return _NOTHING
        try:
            return self._came(self._http.request(**self._sent(step)))
        except httpx.TransportError as error:
            return self._missing(error, step)

    def close(self) -> None:
        """Close its connections."""
        if self._owns:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncMemory(_Face[httpx.AsyncClient]):
    """As `Memory`, for asyncio: the same methods, awaited.

    >>> async with AsyncMemory("http://127.0.0.1:8702", app="shop") as memory:  # doctest: +SKIP
    ...     await memory.add("My name is Alex.", user_id="u-1")
    """

    def _opened(self) -> httpx.AsyncClient:
        return httpx.AsyncClient()

    add = _async(Calls.add)
    end = _async(Calls.end)
    search = _async(Calls.search)
    context = _async(Calls.context)
    facts = _async(Calls.facts)
    episodes = _async(Calls.episodes)
    recent = _async(Calls.recent)
    turns = _async(Calls.turns)
    segments = _async(Calls.segments)
    profile = _async(Calls.profile)
    app_of = _async(Calls.app_of)
    forget = _async(Calls.forget)
    set_fact = _async(Calls.set_fact)
    pin_fact = _async(Calls.pin_fact)
    delete_fact = _async(Calls.delete_fact)
    set_memory_mode = _async(Calls.set_memory_mode)

    async def _carried_out(self, steps: Steps[_T]) -> _T:
        answer: Answer | None = None
        try:
            while True:
                step = next(steps) if answer is None else steps.send(answer)
                answer = await self._done(step)
        except StopIteration as end:
            returned: _T = end.value
            return returned

    async def _done(self, step: Request | Pause) -> Answer:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return _NOTHING
        try:
            return self._came(await self._http.request(**self._sent(step)))
        except httpx.TransportError as error:
            return self._missing(error, step)

    async def close(self) -> None:
        """Close its connections."""
        if self._owns:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _as_text(value: Any) -> str:
    """What JSON has no form for: times as they are written down."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
