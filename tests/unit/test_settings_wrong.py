"""Settings that are wrong: each with the field named, what was perhaps meant, and never with the value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from models.errors import ConfigurationError
from models.policy import load_policy
from streams.settings import Settings, load_settings
from streams.settings.reading import unknown_variables

_SECRET = "hunter2-hunter2-hunter2"  # noqa: S105 - of nobody


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TURNTIDE_KAFKA", "TURNTIDE_CONFIG"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("TURNTIDE_KAFKA__REPLICATION", _SECRET, ["kafka.replication (TURNTIDE_KAFKA__REPLICATION)", "integer"]),
        ("TURNTIDE_KAFKA__SESSION_TIMEOUT", "ten seconds", ["kafka.session_timeout", "PT30S"]),
        ("TURNTIDE_LOG_FORMAT", "xml", ["log_format (TURNTIDE_LOG_FORMAT)", "'console' or 'json'"]),
        (
            "TURNTIDE_HTTP__TOKENS",
            f'[{{"token": "{_SECRET}"',
            ["http.tokens (TURNTIDE_HTTP__TOKENS): no JSON", f"at character {len(_SECRET) + 14}"],
        ),
        ("TURNTIDE_HTTP__TOKENS", '[{"token": "short"}]', ["http.tokens.0.token (TURNTIDE_HTTP__TOKENS)", "16"]),
        (
            "TURNTIDE_HTTP__TOKENS",
            json.dumps([{"token": _SECRET, "rolle": "admin"}]),
            ["http.tokens.0.rolle", "role is perhaps meant"],
        ),
        ("TURNTIDE_HTTP__TOKENS", json.dumps([{_SECRET: "admin"}]), ["http.tokens.0 (", "There are token, apps"]),
        ("TURNTIDE_ICEBERG__PROPERTIES", f"token={_SECRET}", ["iceberg.properties", "no JSON"]),
        ("TURNTIDE_KAFKA__SASL_PASSWORD", "", []),
    ],
)
def test_a_wrong_variable_names_its_field(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, expected: list[str]
) -> None:
    """Field, variable and what is wrong with it; nothing of the error that pydantic made, which may quote a secret."""
    monkeypatch.setenv(variable, value)
    if not expected:
        assert not load_settings().kafka.sasl_password.get_secret_value()
        return
    with pytest.raises(ConfigurationError) as told:
        load_settings()

    message = str(told.value)
    assert [part for part in (*expected, "turntide doctor") if part not in message] == []
    assert _SECRET not in message
    assert (told.value.__cause__, told.value.__context__) == (None, None)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("t.toml", b'[kafka]\nbootstrp = "a:1"\n', "kafka.bootstrp is no setting: kafka.bootstrap is perhaps meant"),
        ("t.toml", b'topic_prefx = "x"\n[kafke]\n', "topic_prefx is no setting: topic_prefix is perhaps meant; kafke"),
        ("t.toml", b'[kafka]\nbootstrap = "a:1\n', "at line 2"),
        ("t.toml", b"\xff\xfe", "not UTF-8"),
        ("t.yaml", b"kafka:\n  bootstrap: a:1\n", "read from TOML, not .yaml"),
        ("t.toml", b"[kafka]\nreplication = []\n", "kafka.replication"),
        ("t.toml", b'kafka = "a:1"\n', "kafka (TURNTIDE_KAFKA)"),
        ("missing.toml", None, "No such file"),
        ("t.toml", b"a = " + b"[" * 5_000, "nested too deeply"),
    ],
)
def test_a_wrong_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, content: bytes | None, expected: str
) -> None:
    """One that is not there, is no TOML or names what is no setting is refused, with file and field or line."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    monkeypatch.setenv("TURNTIDE_CONFIG", str(tmp_path / name))
    with pytest.raises(ConfigurationError) as told:
        load_settings()

    assert expected in str(told.value)


@pytest.mark.parametrize(
    ("variable", "value", "meant"),
    [
        ("TURNTIDE_KAFKA__BOOTSTRP", "a:1", "TURNTIDE_KAFKA__BOOTSTRAP"),
        ("TURNTIDE_KAFKA_BOOTSTRAP", "a:1", "TURNTIDE_KAFKA__BOOTSTRAP"),
        ("TURNTIDE_KAFKA__BOOTSTRAP__HOST", "a:1", "TURNTIDE_KAFKA__BOOTSTRAP"),
        ("TURNTIDE_DATADIR", "x", "TURNTIDE_DATA_DIR"),
        ("TURNTIDE_ZZZZZZ", "x", None),
        ("TURNTIDE_HTTP__INDX_PORT", "8702", "TURNTIDE_HTTP__INDEX_PORT"),
        ("TURNTIDE_HTTP", '{"hots": "x"}', "http.host"),
    ],
)
def test_misspelt_variables_are_found(variable: str, value: str, meant: str | None) -> None:
    """By name, also in the JSON of a section, with the setting that was perhaps meant."""
    (found,) = unknown_variables(Settings, {variable: value, "PATH": "x"})

    assert (variable, meant) == (found.name.partition(":")[0], found.meant)


@pytest.mark.parametrize(("value", "seconds"), [("90", 90), ("1.5", 1.5), ("PT2M", 120), ("00:01:00", 60)])
def test_durations_of_the_environment(monkeypatch: pytest.MonkeyPatch, value: str, seconds: float) -> None:
    """As the message for a wrong one says that they are written."""
    monkeypatch.setenv("TURNTIDE_KAFKA__STALL_AFTER", value)

    assert load_settings().kafka.stall_after.total_seconds() == seconds


def test_variables_of_others_are_left_alone() -> None:
    """Settings in every form, the file's name, and what a cluster adds for a service called `turntide-index`."""
    fine = {
        "TURNTIDE_CONFIG": "x",
        "TURNTIDE_KAFKA": "a:1",
        "turntide_kafka__partitions": "3",
        "TURNTIDE_HTTP": "{}",
        "TURNTIDE_VECTORS__EMBEDDING__MODEL": "m",
        "TURNTIDE_ICEBERG__PROPERTIES__S3.REGION": "r",
        "TURNTIDE_INDEX_SERVICE_HOST": "10.0.0.1",
        "TURNTIDE_INDEX_PORT": "tcp://10.0.0.1:8702",
        "TURNTIDE_INDEX_PORT_8702_TCP_ADDR": "10.0.0.1",
    }

    assert unknown_variables(Settings, fine) == []


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (b"[alerts]\nresolve_after_turn = 3\n", "unknown field `resolve_after_turn` - at `$.alerts` (resolve_after_t"),
        (b"[alertz]\n", "(alerts is perhaps meant)"),
        (b'[alerts]\nrenotify_after = "half an hour"\n', "$.alerts.renotify_after"),
        (b"[alerts\n", "at line 1"),
    ],
)
def test_a_wrong_policy_names_its_field(policy: bytes, expected: str) -> None:
    """And what was perhaps meant, in the same section."""
    with pytest.raises(ConfigurationError) as told:
        load_policy(policy, "toml")

    assert expected in str(told.value)
