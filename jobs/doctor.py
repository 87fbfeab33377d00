"""`turntide doctor`: the settings, redacted, and whether everything they name works."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel

from jobs.cli import examples
from jobs.doctor_escalation import check_judge, check_scorer
from jobs.output import Output, OutputFormat
from jobs.role_groups import role_groups
from jobs.verdict import Status, Verdict
from models.errors import ConfigurationError, TurntideError
from streams.settings import Settings, load_settings
from streams.wiring import ROLES

_EXIT_FAILED = 1
_FOLLOWS = {"memory": "sessions", "enrich": "memory", "index": "sessions", "archive": "sessions"}
"""Role → the one that it takes its work from; `judge` too, where one is configured."""
_WARN_FREE_BYTES = 5 * 1024**3
_FAIL_FREE_BYTES = 512 * 1024**2
_GIB = 1024**3


def doctor(
    output: Annotated[OutputFormat, typer.Option("--output", help="How settings and checks are printed.")] = (
        OutputFormat.TABLE
    ),
) -> None:
    """Print every setting, secrets redacted, and check whether what they name is there and works.

    Exits with code 1 when a check fails. Nothing is changed.
    """
    settings: Settings | None = None
    try:
        settings = load_settings()
        checks = [_row(name, _guarded(check, settings)) for name, check in CHECKS.items()]
    except ConfigurationError as error:
        checks = [_row("settings", Verdict(Status.FAIL, str(error), "mend the named fields"))]
    rows = list(setting_rows(settings))
    failed = any(check["status"] == Status.FAIL for check in checks)
    printed = Output(output)
    if output is OutputFormat.JSON:
        printed.record({"ok": not failed, "settings": rows, "checks": checks})
    else:
        printed.rows("settings", rows)
        printed.message("kafka.bootstrap is set by TURNTIDE_KAFKA__BOOTSTRAP, others likewise, or in TURNTIDE_CONFIG")
        printed.rows("checks", checks)
    if failed:
        raise typer.Exit(_EXIT_FAILED)


doctor.epilog = examples("turntide doctor", "turntide doctor --output json | jq '.checks[]'")  # type: ignore[attr-defined]


def setting_rows(settings: Settings | None) -> Iterator[dict[str, object]]:
    """Every field with its value, or its default where the settings are wrong."""
    yield from _rows(Settings, settings, ())


def _rows(model: type[BaseModel], values: BaseModel | None, path: tuple[str, ...]) -> Iterator[dict[str, object]]:
    for name, field in model.model_fields.items():
        place = (*path, name)
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _rows(kind, getattr(values, name, None), place)
            continue
        value = field.get_default(call_default_factory=True) if values is None else getattr(values, name)
        yield {
            "setting": ".".join(place),
            "value": "" if value is None else redacted(name, str(value)),
            "description": field.description or "",
        }


def redacted(name: str, value: str) -> str:
    """The value without what may be a secret in an address: user and password, and a webhook's path.

    >>> redacted("url", "https://me:secret@example.org/api"), redacted("webhook_url", "https://example.org/hook/123")
    ('https://…@example.org/api', 'https://example.org/…')
    """
    value = re.sub(r"//[^/@]*@", "//…@", value)
    return re.sub(r"(//[^/]+/).+", r"\1…", value) if name == "webhook_url" else value


def _row(name: str, verdict: Verdict) -> dict[str, object]:
    return {"check": name, "status": verdict.status.value, "detail": verdict.detail, "advice": verdict.advice}


def _guarded(check: Callable[[Settings], Verdict], settings: Settings) -> Verdict:
    try:
        return check(settings)
    except ModuleNotFoundError as error:
        return Verdict(Status.FAIL, f"package {error.name} is not installed", "install `turntide[local]`")
    except TurntideError as error:
        return Verdict(Status.FAIL, str(error))


def _broker(settings: Settings) -> Verdict:
    from streams.kafka.client import admin

    async def ask() -> int:
        async with admin(settings.kafka) as client:
            return len((await client.describe_cluster())["brokers"])

    began = time.monotonic()
    brokers = asyncio.run(ask())
    took_ms = (time.monotonic() - began) * 1000
    if brokers < settings.kafka.replication:
        return Verdict(
            Status.FAIL,
            f"{brokers} brokers, replication {settings.kafka.replication}",
            "start more brokers or lower TURNTIDE_KAFKA__REPLICATION",
        )
    return Verdict(Status.OK, f"{settings.kafka.bootstrap}: {brokers} brokers, connected in {took_ms:.0f} ms")


def _topics(settings: Settings) -> Verdict:
    from jobs.topics import differences

    found = asyncio.run(differences(settings))
    if not found:
        return Verdict(Status.OK, f"all as wanted under {settings.topic_prefix}")
    missing = sum(difference.kind == "missing" for difference in found)
    status = Status.FAIL if missing else Status.WARN
    return Verdict(
        status, f"{missing} missing, {len(found) - missing} other differences", "`turntide topics plan`, then `apply`"
    )


def _disk(settings: Settings) -> Verdict:
    place = _existing(settings.data_dir)
    free_bytes = shutil.disk_usage(place).free
    detail = f"{settings.data_dir}: {free_bytes / _GIB:.1f} GiB free"
    if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
        return Verdict(
            Status.FAIL, f"{place} cannot be written to", "set TURNTIDE_DATA_DIR to a folder that this user may write"
        )
    if free_bytes < _FAIL_FREE_BYTES:
        return Verdict(Status.FAIL, detail, "free some space or set TURNTIDE_DATA_DIR to another disk")
    if free_bytes < _WARN_FREE_BYTES:
        return Verdict(Status.WARN, detail, "the archive grows: plan for more space")
    return Verdict(Status.OK, detail)


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists: what is missing is made when it is needed."""
    return next(place for place in (folder, *folder.absolute().parents) if place.exists())


def _archive(settings: Settings) -> Verdict:
    from streams.lake.catalog import open_reader, paths_of, reading
    from streams.lake.damage import damaged, foreign_files, told

    paths = paths_of(settings)
    try:
        open_reader(paths).close()
    except ConfigurationError as error:
        return Verdict(Status.WARN, str(error))
    with reading(paths) as con:
        hurt, foreign = damaged(con), foreign_files(con)
    if hurt:
        return Verdict(Status.FAIL, told(hurt), "`turntide archive verify` names every file")
    place = f"{paths.shown} with data in {paths.data}"
    if foreign:
        return Verdict(
            Status.WARN, f"{place} opens; {len(foreign)} files there are not the archive's", "move them elsewhere"
        )
    return Verdict(Status.OK, f"{place} opens, every file is there")


def _embedder(settings: Settings) -> Verdict:
    from streams.wiring import embedder_of

    embedder = embedder_of(settings)
    shape = embedder.embed(["a turn"]).shape
    if shape != (1, embedder.dim):
        return Verdict(Status.FAIL, f"{embedder.name} gives {shape}, not (1, {embedder.dim})", "reinstall its package")
    return Verdict(Status.OK, f"{embedder.name}, {embedder.dim} dimensions")


def _ports(settings: Settings) -> Verdict:
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


def _access(settings: Settings) -> Verdict:
    from streams.api.security import access_of

    http = settings.http
    access_of(http)  # says what is wrong, and what to do
    if not http.tokens:
        return Verdict(Status.OK, f"no tokens: everybody on this machine reads, nobody else ({http.host})")
    everything = sum(not entry.apps for entry in http.tokens)
    return Verdict(Status.OK, f"{len(http.tokens)} tokens, {everything} of them for all apps")


def _workers(settings: Settings) -> Verdict:
    """Only what belongs together: whoever runs sessions and no memory finds requests and turns piling up."""
    groups = asyncio.run(role_groups(settings, ROLES))
    members = {role: group.members for role, group in groups.items()}
    shown = ", ".join(f"{role} {count}" for role, count in members.items())
    follows = _FOLLOWS if settings.judge.kind == "off" else {**_FOLLOWS, "judge": "sessions"}
    away = [role for role, before in follows.items() if members[before] and not members[role]]
    if not away:
        return Verdict(Status.OK, shown)
    return Verdict(
        Status.WARN,
        shown,
        f"`turntide worker {away[0]}` is not running: what it reads waits, until retention removes it",
    )


def _policy(settings: Settings) -> Verdict:
    from streams.wiring import policy_of

    return Verdict(Status.OK, f"{settings.policy_file or 'defaults'}, version {policy_of(settings).version}")


def _sinks(settings: Settings) -> Verdict:
    from streams.notify.sinks import configured_sinks

    names = [sink.name for sink in configured_sinks(settings.notify)]
    if not names:
        return Verdict(Status.OK, "none configured, alerts stand on the topic")
    if settings.notify.webhook_url and settings.notify.webhook_secret is None:
        return Verdict(Status.WARN, "webhook deliveries are unsigned", "set TURNTIDE_NOTIFY__WEBHOOK_SECRET")
    return Verdict(Status.OK, f"{', '.join(names)}: `turntide alerts test` tries them")


CHECKS: dict[str, Callable[[Settings], Verdict]] = {
    "broker": _broker,
    "topics": _topics,
    "disk": _disk,
    "archive": _archive,
    "embedder": _embedder,
    "ports": _ports,
    "access": _access,
    "workers": _workers,
    "policy": _policy,
    "scorer": check_scorer,
    "judge": check_judge,
    "sinks": _sinks,
}
"""Every check by name, in the order they are printed."""
