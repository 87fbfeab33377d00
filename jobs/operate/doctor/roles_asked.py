"""HTTP addresses at which the roles of these settings answer."""

from __future__ import annotations

from collections.abc import Iterator

from streams.settings.http import HttpSettings
from streams.wiring import ROLES

_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - compared, not listened on


def asked(http: HttpSettings) -> Iterator[tuple[str, str]]:
    """Each role with its base address; none where the port is chosen anew at each start."""
    host = _ANYWHERE.get(http.host, http.host)
    for role in ROLES:
        port: int = getattr(http, f"{role}_port")
        if port:
            yield role, f"http://{f'[{host}]' if ':' in host else host}:{port}"
