"""Loopback ports for a local broker and its roles."""

import secrets
import socket
from collections import deque

HOST = "127.0.0.1"
PORTS = range(20_000, 32_000)
"""Below every system's ephemeral range: there, a client that retries a killed broker can be given the
broker's own port and connect to itself, and the broker cannot come back."""

_given: deque[int] = deque(maxlen=100)
"""Ports that were given last: whoever has one may not have bound it yet."""


def port_is_free(port: int, host: str = HOST) -> bool:
    """Check that a server could listen on this port now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port(preferred: int | None = None) -> int:
    """`preferred` if it is free, else a random free loopback port that was not given just before."""
    port = preferred or secrets.choice(PORTS)
    while not port_is_free(port) or (port in _given and port != preferred):
        port = secrets.choice(PORTS)
    _given.append(port)
    return port
