"""The compose file: valid, pinned, hardened, and every variable in it is one that the settings know."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft7Validator  # type: ignore[import-untyped]

from streams.settings import load_settings
from streams.settings.http import TokenRole
from streams.wiring import ROLES
from tests.support.manifests import COMPOSE, ROOT, told, variables
from tests.support.tools import kept

Service = dict[str, Any]
FILE: dict[str, Any] = msgspec.yaml.decode((COMPOSE / "compose.yaml").read_bytes())
SERVICES: dict[str, Service] = FILE["services"]
WRITES_ITS_ROOT = {"kafka"}
PINNED = re.compile(r"[a-z/]+:(v?\d+\.\d+\.\d+[a-z-]*|\d+\.\d+-[a-z]+|RELEASE\.[\dTZ-]+)")
LOOPBACK = re.compile(r"127\.0\.0\.1:\d+:\d+")
VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


def _workers() -> dict[str, Service]:
    return {name: service for name, service in SERVICES.items() if service.get("command", [""])[0] == "worker"}


def test_file_is_valid() -> None:
    """By the schema of the compose specification."""
    schema = json.loads(kept("compose-spec.json").read_text())

    assert [error.message for error in Draft7Validator(schema).iter_errors(FILE)] == []


def test_every_role_is_there_with_what_it_waits_for() -> None:
    """Service names are those that Prometheus' configuration asks for; what somebody waits for can become healthy."""
    scraped = (ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text()

    assert {name: service["command"] for name, service in _workers().items()} == {
        role: ["worker", role] for role in ROLES
    }
    assert set(re.findall(r"names: \[(\w+)\]", scraped)) == set(ROLES)
    for name, service in SERVICES.items():
        for awaited, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "test" in SERVICES[awaited]["healthcheck"], (name, awaited)
            else:
                assert SERVICES[awaited]["restart"] == "no", (name, awaited)


@pytest.mark.parametrize("name", SERVICES)
def test_service_is_pinned_and_hardened(name: str) -> None:
    """No moving tags, no new rights, a read-only root, ports on loopback alone."""
    service = SERVICES[name]

    assert PINNED.fullmatch(service["image"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["cap_drop"] == ["ALL"]
    assert service["read_only"] is (name not in WRITES_ITS_ROOT)
    assert all(LOOPBACK.fullmatch(port) for port in service.get("ports", []))
    assert "privileged" not in service
    assert not [variable for variable in service.get("environment", {}) if re.search(r"PASSWORD$|SECRET$", variable)]


def test_variables_and_secrets_make_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each service's variables load as settings, beside the file of secrets that the script makes."""
    shutil.copy(COMPOSE / "secrets.sh", tmp_path)
    for _ in range(2):  # a second run keeps what the first one drew
        subprocess.run([tmp_path / "secrets.sh"], check=True, capture_output=True)  # noqa: S603 - our own
        made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
        assert made == {name: text for name, text in made.items() if text}
    named = {secret["file"].removeprefix("./secrets/") for secret in FILE["secrets"].values()}
    environment = told(SERVICES["archive"]["environment"])
    for name, value in environment.items():
        monkeypatch.setenv(name, VARIABLE.sub(lambda found: found[2], value))
    monkeypatch.setenv("TURNTIDE_CONFIG", str(tmp_path / "secrets" / "turntide.toml"))
    settings = load_settings()

    assert named <= set(made)
    assert len(set(made.values())) == len(made)
    assert {name for service in SERVICES.values() for name in told(service.get("environment", {}))} <= variables()
    assert settings.archive.catalog_password is not None
    assert settings.archive.catalog_password.get_secret_value() == made["postgres_password"]
    assert settings.archive.s3_key_id == made["minio_user"]
    assert settings.vectors.url == "http://qdrant:6333"
    assert settings.live.roles == {
        role: f"http://{role}:{getattr(settings.http, f'{role}_port')}" for role in ROLES if role != "judge"
    }
    tokens = {token.token.get_secret_value(): token for token in settings.http.tokens}
    assert (tokens[made["prometheus_token"]].role, tokens[made["prometheus_token"]].text) == (TokenRole.ADMIN, False)
    assert tokens[made["operator_token"]].role is TokenRole.OPERATOR


def test_secrets_of_services_are_files_that_exist_for_them() -> None:
    """What a service reads below /run/secrets is given to it, and nothing else is."""
    for name, service in SERVICES.items():
        text = json.dumps(service) + (_of_prometheus() if name == "prometheus" else "")
        assert set(re.findall(r"/run/secrets/([\w.]+)", text)) == set(service.get("secrets", [])), name


def _of_prometheus() -> str:
    return (ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text()
