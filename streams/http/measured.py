"""Request counts and durations by route template: no path, since paths hold ids."""

from __future__ import annotations

from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streams.observe.telemetry import metrics

OTHER = "other"
"""What fits no route, or was refused before one was looked for."""
_FAILED = 500
_STREAM = b"text/event-stream"


class Measured:
    """Pure ASGI, around everything else."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and count it when its answer has ended."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, streamed, began_s = _FAILED, False, perf_counter()

        async def sent(message: Message) -> None:
            nonlocal status, streamed
            if message["type"] == "http.response.start":
                status = message["status"]
                streamed = any(
                    name.lower() == b"content-type" and value.startswith(_STREAM)
                    for name, value in message.get("headers", ())
                )
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            route = route_of(scope)
            metrics.counter("http_requests_total", route=route, status=f"{status // 100}xx").inc()
            if not streamed:
                metrics.histogram("http_request_seconds", route=route).observe(perf_counter() - began_s)


def route_of(scope: Scope) -> str:
    """The template of the route that answered, for instance `/v1/sessions/{session_id}/turns`."""
    template = getattr(scope.get("route"), "path", None)
    if isinstance(template, str):
        return template
    # Plain routes of Starlette leave no trace of themselves but what they call; without parameters the path is theirs.
    if "endpoint" in scope and not scope.get("path_params"):
        return str(scope["path"])
    return OTHER
