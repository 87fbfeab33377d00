"""Checks of what is served and told: ports, tokens, sinks of alerts."""

from __future__ import annotations

import socket
from contextlib import suppress
from http import HTTPStatus
from urllib.parse import urlsplit

import httpx
from pydantic import SecretStr

from jobs.operate.doctor.roles_asked import asked
from jobs.operate.doctor.verdict import Status, Verdict
from streams.settings import Settings
from streams.wiring import ROLES

_TIMEOUT_S = 3.0
_GUARDED = "/v1/doctor"
"""No route: whoever is let in gets 404, without reading anything."""


def check_ports(settings: Settings) -> Verdict:
    """Whether the roles' ports are free."""
    http = settings.http
    ports = {role: getattr(http, f"{role}_port") for role in ROLES}
    taken = [f"{role} {port}" for role, port in ports.items() if port and not _is_free(http.host, port)]
    if taken:
        return Verdict(
            Status.WARN,
            f"in use at {http.host}: {', '.join(taken)}",
            "fine if our workers run; else set TURNTIDE_HTTP__…",
        )
    return Verdict(Status.OK, f"free at {http.host}: {', '.join(str(port) for port in ports.values())}")


def _is_free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def check_access(settings: Settings) -> Verdict:
    """Whether a role would start with these tokens at this address."""
    from streams.http.security import access_of

    http = settings.http
    access_of(http)  # says what is wrong, and what to do
    if not http.tokens:
        return Verdict(Status.OK, f"no tokens: everybody on this machine reads, nobody else ({http.host})")
    everything = sum(not entry.apps for entry in http.tokens)
    return Verdict(Status.OK, f"{len(http.tokens)} tokens, {everything} of them for all apps")


def check_tokens(settings: Settings) -> Verdict:
    """Whether the roles that run know the tokens that are configured here."""
    entries = enumerate(settings.http.tokens)
    tokens: list[tuple[str, SecretStr | None]] = [(f"http.tokens.{number}", entry.token) for number, entry in entries]
    asked_of, refused = [], []
    with httpx.Client(trust_env=False, timeout=_TIMEOUT_S) as client:
        for role, url in asked(settings.http):
            with suppress(httpx.HTTPError):
                if client.get(f"{url}/livez").status_code != HTTPStatus.OK:
                    continue
                asked_of.append(role)
                for name, token in tokens or [("a request without a token", None)]:
                    headers = {"Authorization": f"Bearer {token.get_secret_value()}"} if token else {}
                    if client.get(url + _GUARDED, headers=headers).status_code == HTTPStatus.UNAUTHORIZED:
                        refused.append(f"{role} at {url} refuses {name}")
    if refused:
        return Verdict(
            Status.FAIL,
            ", ".join(refused),
            "the role was started with other tokens: set TURNTIDE_HTTP__TOKENS here to those, or restart the role with "
            "these",
        )
    if not asked_of:
        return Verdict(Status.OK, "no role answers that could refuse them")
    return Verdict(Status.OK, f"taken by {', '.join(asked_of)}")


def check_sinks(settings: Settings) -> Verdict:
    """Whether alerts have somewhere to go that can be reached; nothing is sent."""
    from streams.wiring import sinks_of

    notify = settings.notify
    names = [sink.name for sink in sinks_of(notify)]
    if not names:
        return Verdict(Status.OK, "none configured, alerts stand on the topic")
    for field, url in (("webhook_url", notify.webhook_url), ("alertmanager_url", notify.alertmanager_url)):
        if url and (why := _unreachable(url)):
            return Verdict(
                Status.FAIL,
                f"notify.{field}: {why}",
                f"start what listens there, or mend TURNTIDE_NOTIFY__{field.upper()}; then `turntide alerts test`",
            )
    if notify.webhook_url and notify.webhook_secret is None:
        return Verdict(Status.WARN, "webhook deliveries are unsigned", "set TURNTIDE_NOTIFY__WEBHOOK_SECRET")
    return Verdict(Status.OK, f"{', '.join(names)} can be reached: `turntide alerts test` tries them")


def _unreachable(url: str) -> str:
    """Why no connection is made to the address; empty if one is."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return "it is no address"
    if not host:
        return "it names no host"
    try:
        socket.create_connection((host, port), timeout=_TIMEOUT_S).close()
    except OSError as error:
        return f"{host}:{port} does not answer ({type(error).__name__})"
    return ""
