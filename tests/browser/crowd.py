"""What a crowd that stops reading costs: `python -m tests.browser.crowd --clients 10000` prints it.

Each client asks for the live stream, takes the first bytes of the answer and reads no more. Meanwhile sessions change,
and one client reads on. Clients are a process of their own: both sides have a file descriptor for each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import socket
import threading
import time
from collections import Counter
from multiprocessing.connection import Connection

import httpx
import psutil

from streams.observe.telemetry import configure_logging
from tests.browser.live_server import LiveServer, token_of
from tests.browser.made_up import session

_SESSIONS, _PER_SECOND, _SESSIONS_PER_FRAME = 10_000, 20, 3
PATH = "/v1/live/stream"
_AT_ONCE = 100
_LOOK_EVERY_S = 5.0
_RECEIVED_BYTES = 4_096
"""A small buffer: who stops reading is noticed after little."""
_HEAD = len("HTTP/1.1 200")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=10_000, help="how many stop reading")
    parser.add_argument("--let-in", type=int, help="live.max_streams; none: the default")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to look after all have connected")
    asked = parser.parse_args()
    configure_logging(level="error")
    logging.disable()  # a line for each that is let go
    with LiveServer(asked.let_in) as server:
        server.push([session(number) for number in range(_SESSIONS)])
        reader = _Reader(server.url)
        here, there = multiprocessing.Pipe()
        crowd = multiprocessing.get_context("spawn").Process(
            target=_connect_all, args=(server.url, asked.clients, there), daemon=True
        )
        crowd.start()
        _watch(server, reader, here, asked.seconds)
        crowd.kill()


class _Reader(threading.Thread):
    """One that reads on.

    Attributes:
        turns: Last number of turns that it was told of the first session.
    """

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.turns = -1
        self.told = threading.Condition()
        self._url = url.removesuffix("/live/") + PATH
        self.start()

    def run(self) -> None:
        headers = {"Authorization": f"Bearer {token_of('operator')}"}
        with httpx.stream("GET", self._url, headers=headers, timeout=None) as answer:  # noqa: S113 - it never ends
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    self._take(json.loads(line.removeprefix("data: ")))

    def _take(self, told: dict[str, list[dict[str, object]]]) -> None:
        for row in told.get("sessions", ()):
            if row["session_id"] == "session-00000":
                with self.told:
                    self.turns = int(str(row["turns"]))
                    self.told.notify_all()


def _watch(server: LiveServer, reader: _Reader, crowd: Connection, seconds: float) -> None:
    process, began = psutil.Process(), time.monotonic()
    begun_mb, connected_s, frame, looked, slowest_s = _mb(process), None, 0, 0.0, 0.0
    print(f"{begun_mb:6.0f} MB before")  # noqa: T201 - it is what this prints
    while connected_s is None or time.monotonic() - connected_s < seconds:
        frame += 1
        changed = [session((frame * _SESSIONS_PER_FRAME + n) % _SESSIONS) for n in range(_SESSIONS_PER_FRAME)]
        pushed_s = time.monotonic()
        server.push([*changed, session(0, turns=1_000 + frame)])
        with reader.told:
            if not reader.told.wait_for(lambda at=frame: reader.turns >= 1_000 + at, 60):  # type: ignore[misc]
                print("the reader was told nothing for 60 s")  # noqa: T201 - likewise
        slowest_s = max(slowest_s, time.monotonic() - pushed_s)
        if crowd.poll():
            connected_s = time.monotonic()
            print(f"answered: {crowd.recv()}, in {connected_s - began:.1f} s")  # noqa: T201 - likewise
        if time.monotonic() - began - looked >= _LOOK_EVERY_S:
            looked = time.monotonic() - began
            print(  # noqa: T201 - likewise
                f"{looked:5.0f} s  {server.streams:6,} streams  {_mb(process):6.0f} MB  "
                f"CPU {sum(process.cpu_times()[:2]):5.1f} s  the reader waited {slowest_s:.2f} s at most",
                flush=True,
            )
            slowest_s = 0.0
        time.sleep(max(0.0, 1 / _PER_SECOND - (time.monotonic() - pushed_s)))


def _mb(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 1e6


def _connect_all(url: str, clients: int, told: Connection) -> None:
    asyncio.run(_connected(url, clients, told))


async def _connected(url: str, clients: int, told: Connection) -> None:
    """Connect all, say how they were answered, and hold on."""
    address = httpx.URL(url)
    asking = asyncio.Semaphore(_AT_ONCE)

    async def one() -> tuple[str, socket.socket | None]:
        async with asking:
            return await _asked(str(address.host), int(address.port or 80))

    found = await asyncio.gather(*[one() for _ in range(clients)])
    told.send(dict(Counter(answer for answer, _ in found)))
    await asyncio.Event().wait()


async def _asked(host: str, port: int) -> tuple[str, socket.socket | None]:
    loop, client = asyncio.get_running_loop(), socket.socket()
    client.setblocking(False)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED_BYTES)
    head = f"GET {PATH} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token_of('operator')}\r\n\r\n"
    try:
        await loop.sock_connect(client, (host, port))
        await loop.sock_sendall(client, head.encode())
        return (await loop.sock_recv(client, _HEAD)).decode() or "closed", client
    except OSError as error:
        return type(error).__name__, client


if __name__ == "__main__":
    main()
