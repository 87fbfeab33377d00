"""No secret is printed: neither by settings, nor by doctor, nor in what an error or a log line says."""

import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin

import pytest
import structlog
from pydantic import BaseModel, SecretStr

from models.errors import ConfigurationError, TurntideError
from streams.http.security import access_of
from streams.kafka.client import client_options
from streams.settings import Settings, load_settings
from tests.support.command_line import turntide

SENTINEL = "sentinel-of-a-secret"
_ADDRESSES = ("url", "base_url", "webhook_url", "alertmanager_url", "otlp_endpoint", "uri")
"""Names of fields that hold an address, with user and password in it."""
_KNOWN_NAMES = 10
"""There were so many fields with a secret when this was written: fewer, and this test has gone blind."""


def secrets(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every field that may hold a secret, and a value for it with the sentinel in it."""
    for name, field in model.model_fields.items():
        place, kinds = (*path, name), set(_kinds(field.annotation))
        for inner in kinds:
            if isinstance(inner, type) and issubclass(inner, BaseModel) and get_origin(field.annotation) is not list:
                yield from secrets(inner, place)
        if get_origin(field.annotation) is dict and SecretStr in kinds:
            yield place, {"credential": f"{SENTINEL}-{'-'.join(place)}"}
        elif SecretStr in kinds:
            yield place, f"{SENTINEL}-{'-'.join(place)}"
        elif name in _ADDRESSES and str in kinds:
            yield place, f"http://me:{SENTINEL}-{'-'.join(place)}@127.0.0.1:9/v1"


def _kinds(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in (Union, types.UnionType, list, dict):
        for each in get_args(annotation):
            yield from _kinds(each)
    else:
        yield annotation


def _settings(**more: Any) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for place, value in secrets(Settings):
        at = tree
        for name in place[:-1]:
            at = at.setdefault(name, {})
        at[place[-1]] = value
    tree["http"] = {"tokens": [{"token": f"{SENTINEL}-of-a-token", "name": "support"}]}
    tree.setdefault("kafka", {}).update(bootstrap="127.0.0.1:9", security_protocol="SASL_PLAINTEXT", sasl_username="me")
    return tree | more


def test_settings_print_none() -> None:
    """By repr, by str, dumped, as JSON, and in a traceback's locals."""
    assert len(list(secrets(Settings))) >= _KNOWN_NAMES  # those of settings' lists are in it by hand
    settings = load_settings(**_settings())
    printed = f"{settings!r}{settings}{settings.http!r}{settings.http.tokens}"

    assert SENTINEL not in printed
    assert SENTINEL not in settings.http.model_dump_json()
    assert SENTINEL in client_options(settings.kafka)["sasl_plain_password"]


def test_doctor_prints_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Neither the settings nor what its checks say of servers that do not answer."""
    for place, value in secrets(Settings):
        if isinstance(value, str):
            monkeypatch.setenv("__".join(("TURNTIDE", *map(str.upper, place))), value)
    monkeypatch.setenv("TURNTIDE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TURNTIDE_KAFKA", "127.0.0.1:9")
    monkeypatch.setenv("TURNTIDE_HTTP__TOKENS", f'[{{"token": "{SENTINEL}-of-a-token"}}]')
    with structlog.testing.capture_logs() as logs:
        told = turntide("doctor", "--within", "1", "--output", "json")

    assert "kafka.sasl_password" in told.output
    assert "settings are wrong" not in told.output
    assert SENTINEL not in f"{told.output}{told.stderr}{logs}{told.exception!r}"


@pytest.mark.parametrize(
    "wrong",
    [
        {"http": {"tokens": [{"token": SENTINEL[:15]}]}},
        {"http": {"tokens": [{"token": f"{SENTINEL} with a space"}]}},
        {"http": {"tokens": [{"token": SENTINEL, "role": SENTINEL}]}},
        {"http": {"tokens": [{"token": SENTINEL}, {"token": SENTINEL}]}},
        {"kafka": {"sasl_password": [SENTINEL]}},
        {"vectors": {"api_key": {"x": SENTINEL}}},
        {"llm": {"timeout": SENTINEL}},
    ],
)
def test_wrong_settings_name_the_field_and_not_its_value(wrong: dict[str, Any]) -> None:
    """Whoever puts a secret into the wrong place does not find it in a log."""
    with pytest.raises(TurntideError) as refused:
        access_of(load_settings(**wrong).http)

    assert isinstance(refused.value, ConfigurationError)
    said = f"{refused.value}{refused.value.__cause__ or ''}{refused.value.__context__ or ''}"
    assert SENTINEL[:15] not in said
