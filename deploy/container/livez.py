# ruff: noqa: INP001 - a script of the image, no package
"""Health check of the container: every role that runs in it is alive.

A role listens on its own port; which one runs here is seen by who answers. Only the standard library: it runs four
times a minute.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException

DEFAULT_PORTS = {
    "SESSIONS": 8701,
    "INDEX": 8702,
    "ARCHIVE": 8703,
    "NOTIFY": 8704,
    "MEMORY": 8705,
    "ENRICH": 8706,
    "API": 8707,
    "JUDGE": 8708,
    "GATEWAY": 8709,
}
"""As the settings have them (`http.…_port`); a test compares."""
_ANSWER_WITHIN_S = 3.0
_OK = 200


def ports() -> list[int]:
    """Where roles listen in this container, by the same variables as the roles read."""
    return [int(os.environ.get(f"TURNTIDE_HTTP__{role}_PORT", port)) for role, port in DEFAULT_PORTS.items()]


def trouble(where: Sequence[int], host: str = "127.0.0.1") -> str | None:
    """What is wrong; None when at least one role listens and all that do are alive.

    Args:
        where: Ports to ask.
        host: Address to ask.
    """
    heard = 0
    for port in where:
        connection = HTTPConnection(host, port, timeout=_ANSWER_WITHIN_S)
        try:
            connection.request("GET", "/livez")
            answer = connection.getresponse()
            said = answer.read(500).decode(errors="replace")
        except ConnectionRefusedError:
            continue
        except (OSError, HTTPException) as error:
            return f"port {port}: {error!r}"
        finally:
            connection.close()
        if answer.status != _OK:
            return f"port {port}: {said}"
        heard += 1
    return None if heard else "no role listens"


if __name__ == "__main__":
    found = trouble(ports())
    if found is not None:
        sys.exit(found)
