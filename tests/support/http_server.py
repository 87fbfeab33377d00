"""HTTP server on loopback that stands in for somebody else's: a function answers each request."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Request(BaseHTTPRequestHandler):
    """One request, and the way to answer it."""

    def body(self) -> bytes:
        """Body, whole."""
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def names_and_values(self) -> dict[str, str]:
        """Headers by their names in small letters."""
        return {name.lower(): value for name, value in self.headers.items()}

    def reply(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        """Answer with a status, a body of the stated length, and headers; none is added."""
        self.send_response_only(status)
        for name, value in {**(headers or {}), "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Say nothing."""


@contextmanager
def answering(answer: Callable[[Request], None]) -> Iterator[str]:
    """Address of a server that answers so, each request in a thread of its own, until the context ends."""

    class Handler(Request):
        def do_POST(self) -> None:
            answer(self)

        def do_GET(self) -> None:
            answer(self)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
