"""Without tokens this machine alone is answered: no page elsewhere may use a browser here as its hand."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

from streams.http.problems import Problem


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def require_this_machine(host: str) -> None:
    """Refuse a page elsewhere that has its name point at this machine (DNS rebinding).

    Raises:
        Problem: 421, the request names another host.
    """
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    if not is_loopback(name.removeprefix("[").removesuffix("]")):
        raise Problem(
            HTTPStatus.MISDIRECTED_REQUEST, "misdirected", "without tokens only this machine is answered: ask 127.0.0.1"
        )


def require_own_page(origins: Iterable[str]) -> None:
    """Refuse what a page of another site has a browser on this machine send; a browser does so without asking.

    Raises:
        Problem: 403, the request comes from a page elsewhere.
    """
    if not all(is_loopback(_host_of(origin)) for origin in origins):
        raise Problem(
            HTTPStatus.FORBIDDEN, "foreign_origin", "without tokens pages of other sites may not write: set http.tokens"
        )


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""
