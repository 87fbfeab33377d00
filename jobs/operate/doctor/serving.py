"""Checks of the Kafka cluster and of the roles: broker, topics, workers, clocks, ports, tokens, sinks of alerts.

Kafka has no clock to ask. A turn stamped ahead of this clock says that this clock is behind; a broker that is behind
shows in no record. The roles' clocks show by the `Date` of their answers, in either direction.
"""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import urlsplit

import httpx
from aiokafka import TopicPartition
from pydantic import SecretStr

from jobs.operate.doctor.verdict import Verdict, fail, ok, warn
from jobs.shared.role_groups import role_groups
from jobs.shared.role_process import port_is_free
from jobs.shared.topic_drift import DriftKind, TopicDrift
from models.errors import ConfigurationError, StoreUnavailable
from models.events.topics import TURNS
from streams.kafka.client import admin, consumer, require_topic
from streams.settings import KafkaSettings, Settings
from streams.settings.http import HttpSettings
from streams.wiring import ROLES

_FOLLOWS = {"memory": "sessions", "enrich": "memory", "index": "sessions", "archive": "sessions"}
"""Role → the one that it takes its work from; `judge` and `notify` too, where a judge or a sink is configured."""
_NAMED = 3
_COUNTS = (DriftKind.TOO_FEW_PARTITIONS, DriftKind.TOO_MANY_PARTITIONS, DriftKind.CO_PARTITIONING)


def asked(http: HttpSettings) -> Iterator[tuple[str, str]]:
    """Roles with their base addresses, without those whose port changes at each start."""
    for role in ROLES:
        if (url := http.url_of(role)) is not None:
            yield role, url


_RESOLUTION = timedelta(seconds=1)
"""Of the header `Date`."""
_APPENDED = 1
"""Kafka's timestamp type of a record that the broker stamped."""
_FETCH_MS = 2_000


def check_clock(settings: Settings) -> Verdict:
    """Check that no clock of broker and roles differs from this machine's by more than `max_clock_skew`."""
    at_most, compared, wrong = settings.max_clock_skew, [], []
    for name, ahead in (*_roles(settings), *_broker(settings)):
        compared.append(name)
        if abs(ahead) > at_most:
            wrong.append(
                f"{name} is {abs(ahead).total_seconds():.0f} s {'ahead' if ahead > timedelta(0) else 'behind'}"
            )
    if wrong:
        return fail(
            f"{', '.join(wrong)} of this machine's clock; allowed are {at_most.total_seconds():g} s",
            "let NTP set the wrong clock (`timedatectl` or `chronyc tracking` shows which one is): windows, time-outs "
            "and retention depend on it",
        )
    if not compared:
        return ok("nothing to compare with: no role answers, and the log has no turns")
    return ok(f"within {at_most.total_seconds():g} s of {', '.join(compared)}")


def _roles(settings: Settings) -> Iterator[tuple[str, timedelta]]:
    """Each role that answers, and how far its clock is ahead."""
    with httpx.Client(trust_env=False, timeout=2.0) as client:
        for role, url in asked(settings.http):
            with suppress(httpx.HTTPError, ValueError, KeyError):
                began = datetime.now(UTC)
                answer = client.get(f"{url}/livez")
                theirs = parsedate_to_datetime(answer.headers["date"])
                yield f"role {role}", _ahead(theirs, began, datetime.now(UTC))


def _ahead(theirs: datetime, began: datetime, ended: datetime) -> timedelta:
    """How far a clock is ahead that was read between two readings of ours, to the second below.

    >>> at = datetime(2026, 1, 1, tzinfo=UTC)
    >>> _ahead(at, at, at + timedelta(seconds=2)), _ahead(at + timedelta(minutes=1), at, at)
    (datetime.timedelta(0), datetime.timedelta(seconds=60))
    """
    if theirs + _RESOLUTION < began:
        return theirs + _RESOLUTION - began
    return max(theirs - ended, timedelta(0))


def _broker(settings: Settings) -> Iterator[tuple[str, timedelta]]:
    """Whether the broker has stamped a turn ahead of this clock."""
    with suppress(StoreUnavailable, ConfigurationError):  # `broker` and `topics` tell of it
        newest = asyncio.run(_newest_append(settings.kafka, TURNS.full_name(settings.topic_prefix)))
        if newest is not None:
            yield "the broker", max(newest - datetime.now(UTC), timedelta(0))


async def _newest_append(kafka: KafkaSettings, topic: str) -> datetime | None:
    """When the broker received the last record of any partition; none in an empty topic."""
    places = [TopicPartition(topic, number) for number in await require_topic(kafka, topic)]
    async with consumer(kafka) as client:
        client.assign(places)
        ends, starts = await client.end_offsets(places), await client.beginning_offsets(places)
        filled = [place for place in places if ends[place] > starts[place]]
        for place in filled:
            client.seek(place, ends[place] - 1)
        times = [
            record.timestamp
            for place in filled
            for record in (await client.getmany(place, timeout_ms=_FETCH_MS)).get(place, [])
            if record.timestamp_type == _APPENDED
        ]
    return datetime.fromtimestamp(max(times) / 1000, UTC) if times else None


_TIMEOUT_S = 3.0
_GUARDED = "/v1/doctor"
"""No route: whoever is let in gets 404, without reading anything."""


def check_ports(settings: Settings) -> Verdict:
    """Check that the roles' ports are free."""
    http = settings.http
    ports = {role: getattr(http, f"{role}_port") for role in ROLES}
    taken = [f"{role} {port}" for role, port in ports.items() if port and not port_is_free(port, http.host)]
    if taken:
        return warn(f"in use at {http.host}: {', '.join(taken)}", "fine while workers run; else set TURNTIDE_HTTP__…")
    return ok(f"free at {http.host}: {', '.join(str(port) for port in ports.values())}")


def check_access(settings: Settings) -> Verdict:
    """Check that a role would start with these tokens at this address."""
    from streams.http.security import access_of

    http = settings.http
    access_of(http)  # says what is wrong, and what to do
    if not http.tokens:
        return ok(f"no tokens: only users of this machine may read ({http.host})")
    everything = sum(not entry.apps for entry in http.tokens)
    return ok(f"{len(http.tokens)} tokens, {everything} of them for all apps")


def check_tokens(settings: Settings) -> Verdict:
    """Check that the running roles accept the tokens that are configured here."""
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
        return fail(
            ", ".join(refused),
            "the role was started with other tokens: set TURNTIDE_HTTP__TOKENS here to its tokens, or restart it with "
            "these",
        )
    if not asked_of:
        return ok("not checked: no role answers")
    return ok(f"accepted by {', '.join(asked_of)}")


def check_sinks(settings: Settings) -> Verdict:
    """Check that the sinks of alerts can be reached; nothing is sent."""
    from streams.notify.sinks import sinks_of
    from streams.wiring import written_policy

    notify = settings.notify
    names = [sink.name for sink in sinks_of(settings, written_policy(settings).notify)]
    if not names:
        return ok("none configured: alerts are only on the topic")
    for field, url in notify.addresses.items():
        if why := _unreachable(url):
            return fail(
                f"notify.{field}: {why}",
                f"start the receiver, or correct TURNTIDE_NOTIFY__{field.upper()}; then `turntide alerts test`",
            )
    if notify.webhook_url and notify.webhook_secret is None:
        return warn("webhook deliveries are unsigned", "set TURNTIDE_NOTIFY__WEBHOOK_SECRET")
    return ok(f"{', '.join(names)} can be reached: `turntide alerts test` tries them")


def _unreachable(url: str) -> str:
    """Why no connection is made to the address; empty if one is."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return "not an address"
    if not host:
        return "it has no host"
    try:
        socket.create_connection((host, port), timeout=_TIMEOUT_S).close()
    except OSError as error:
        return f"{host}:{port} does not answer ({type(error).__name__})"
    return ""


def check_broker(settings: Settings) -> Verdict:
    """Check that the cluster answers, with at least as many brokers as topics have replicas."""

    async def ask() -> int:
        async with admin(settings.kafka) as client:
            return len((await client.describe_cluster())["brokers"])

    began = time.monotonic()
    try:
        brokers = asyncio.run(ask())
    except StoreUnavailable as error:
        return fail(
            str(error),
            f"start the broker at {settings.kafka.bootstrap}, or correct TURNTIDE_KAFKA__BOOTSTRAP",
        )
    took_ms = (time.monotonic() - began) * 1000
    if brokers < settings.kafka.replication:
        return fail(
            f"{brokers} brokers, but replication {settings.kafka.replication}",
            "start more brokers or lower TURNTIDE_KAFKA__REPLICATION",
        )
    return ok(f"{settings.kafka.bootstrap}: {brokers} brokers, connected in {took_ms:.0f} ms")


def check_topics(settings: Settings) -> Verdict:
    """Check that every topic exists, with the wanted partitions and configuration."""
    from jobs.operate.topics import differences

    found = asyncio.run(differences(settings))
    if not found:
        return ok(f"all as wanted under {settings.topic_prefix}")
    missing, counts = _named(found, DriftKind.MISSING), _named(found, *_COUNTS)
    if missing:
        return fail(
            f"missing: {missing}",
            "`turntide topics plan`, then `turntide topics apply`; or check TURNTIDE_TOPIC_PREFIX",
        )
    if counts:
        standing = sorted({d.standing for d in found if d.kind in _COUNTS})
        return fail(
            f"partitions not as wanted: {counts}",
            f"if all topics have {standing[0]}, set TURNTIDE_KAFKA__PARTITIONS={standing[0]}; `turntide topics plan` "
            "shows each. Correct it before a worker starts: else sessions are looked up in the wrong partition",
        )
    return warn(f"{len(found)} entries differ: {_named(found, *DriftKind)}", "`turntide topics plan`, then `apply`")


def _named(found: list[TopicDrift], *kinds: DriftKind) -> str:
    names = sorted({difference.topic for difference in found if difference.kind in kinds})
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def check_workers(settings: Settings) -> Verdict:
    """Only what belongs together: whoever runs sessions and no memory finds requests and turns piling up."""
    reading = (role for role in ROLES if role not in {"api", "gateway"})
    groups = asyncio.run(role_groups(settings, reading))
    members = {role: group.members for role, group in groups.items()}
    shown = ", ".join(f"{role} {count}" for role, count in members.items())
    follows = dict(_FOLLOWS)
    if settings.judge.kind != "off":
        follows["judge"] = "sessions"
    if settings.notify.has_sinks:
        follows["notify"] = "sessions"
    away = [role for role, before in follows.items() if members[before] and not members[role]]
    if not away:
        return ok(shown)
    return warn(shown, f"start `turntide worker {away[0]}`: its input waits only until retention removes it")
