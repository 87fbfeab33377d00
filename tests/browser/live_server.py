"""A server for the live page that says what a test wants, and can go away and come back at the same address."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from streams.api.live.page import page_router
from tests.browser import made_up

_PIECE = 1000


class LiveServer:
    """The page's files as they are served, and `/v1/live` from what stands in `sessions` and `alerts`.

    Attributes:
        token: What callers must bring; None: nothing.
        text: Whether they may read text.
        deeds: What was posted: which deed, of which alert, with which body.
        asked: Paths with queries of all requests.
        refuses: Status of posts while it is set.
    """

    def __init__(self) -> None:
        self.sessions: dict[str, made_up.Row] = {}
        self.alerts: dict[str, made_up.Row] = {}
        self.token: str | None = None
        self.text = True
        self.role = "operator"
        self.deeds: list[tuple[str, str, dict[str, Any]]] = []
        self.asked: list[str] = []
        self.refuses: int | None = None
        self._streams: set[asyncio.Queue[bytes | None]] = set()
        self._app = self._made()
        self._port = 0
        self._running: tuple[uvicorn.Server, threading.Thread, asyncio.AbstractEventLoop] | None = None

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self._port}/live/"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._running:
            self.stop()

    def start(self) -> None:
        """Listen, at the address of before if there was one."""
        listener = socket.create_server(("127.0.0.1", self._port))
        self._port = listener.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(self._app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
        loop, listening = asyncio.new_event_loop(), threading.Event()

        async def serve() -> None:
            listening.set()
            await server.serve([listener])

        thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
        thread.start()
        listening.wait()
        self._running = (server, thread, loop)

    def stop(self) -> None:
        """Close every stream and the address."""
        assert self._running
        server, thread, loop = self._running
        self._running = None
        server.should_exit = True
        loop.call_soon_threadsafe(self._tell, None)
        thread.join(timeout=10)
        loop.close()

    def put(self, sessions: Iterable[made_up.Row] = (), alerts: Iterable[made_up.Row] = ()) -> None:
        """Keep rows without telling anybody."""
        self.sessions |= {row["session_id"]: row for row in sessions}
        self.alerts |= {row["alert_id"]: row for row in alerts}

    def push(
        self, sessions: Iterable[made_up.Row] = (), alerts: Iterable[made_up.Row] = (), gone: Iterable[str] = ()
    ) -> None:
        """Keep rows and tell all streams."""
        sessions, alerts, gone = list(sessions), list(alerts), list(gone)
        self.put(sessions, alerts)
        for session_id in gone:
            self.sessions.pop(session_id, None)
        frame = _frame("changes", {"sessions": sessions, "alerts": alerts, "gone": gone})
        assert self._running
        self._running[2].call_soon_threadsafe(self._tell, frame)

    def _tell(self, frame: bytes | None) -> None:
        for each in self._streams:
            each.put_nowait(frame)

    # --- what is answered

    def _made(self) -> FastAPI:
        app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
        app.include_router(page_router())

        @app.middleware("http")
        async def let_in(request: Request, call_next: Any) -> Response:
            self.asked.append(str(request.url))
            data = request.url.path.startswith("/v1/")
            if data and self.token and request.headers.get("authorization") != f"Bearer {self.token}":
                return JSONResponse({"title": "unauthorized", "detail": "this token is not known"}, 401)
            answer: Response = await call_next(request)
            return answer

        app.add_api_route("/v1/live/me", self._me)
        app.add_api_route("/v1/live/stream", self._stream)
        app.add_api_route("/v1/live/search", self._search)
        app.add_api_route("/v1/live/sessions/{session_id:path}/text", self._said)
        app.add_api_route("/v1/live/sessions/{session_id:path}", self._session)
        app.add_api_route("/v1/live/alerts/{alert_id:path}/{deed}", self._deed, methods=["POST"])
        return app

    async def _me(self) -> Response:
        me = {"name": "test", "role": self.role, "text": self.text, "apps": None, "tokens": self.token is not None}
        return JSONResponse(me)

    async def _stream(self) -> Response:
        return StreamingResponse(self._events(), media_type="text/event-stream")

    async def _events(self) -> AsyncIterator[bytes]:
        mine: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._streams.add(mine)
        try:
            rows, alerts = list(self.sessions.values()), list(self.alerts.values())
            for at in range(0, max(len(rows), 1), _PIECE):
                piece = {"sessions": rows[at : at + _PIECE], "more": at + _PIECE < len(rows)}
                told = {"alerts": alerts, "roles": made_up.ROLES} if at == 0 else {"alerts": [], "roles": []}
                yield _frame("snapshot", piece | told)
            while (frame := await mine.get()) is not None:
                yield frame
        finally:
            self._streams.discard(mine)

    async def _session(self, session_id: str, *, text: bool = False) -> Response:
        row = self.sessions.get(session_id)
        if row is None:
            return JSONResponse({"detail": "no such session"}, 404)
        alerts = [each for each in self.alerts.values() if each["session_id"] == session_id]
        return JSONResponse(made_up.timeline(row, alerts, text=text))

    async def _said(self, session_id: str, first: int, last: int) -> Response:
        return JSONResponse({"turns": made_up.said(first, last) if session_id in self.sessions else []})

    async def _search(self, q: str, kind: str) -> Response:
        found = {"kind": kind, "session_id": "a/b", "turn": 3, "user_id": "user-1", "app_id": "support", "score": 0.7}
        return JSONResponse({"hits": [found | {"text": f"{q} {made_up.HOSTILE}"}]})

    async def _deed(self, alert_id: str, deed: str, request: Request) -> Response:
        if self.refuses:
            return JSONResponse({"detail": "Kafka does not answer"}, self.refuses)
        self.deeds.append((deed, alert_id, await request.json()))
        return JSONResponse({"topic": "turns.v1", "partition": 0, "offset": len(self.deeds)}, 202)


def _frame(name: str, data: Mapping[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\nid: 1\n\n".encode()
