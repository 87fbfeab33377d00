"""Settings from the environment, what clients and the archive get of them, and what is said of wrong ones."""

import json
from pathlib import Path

import pytest

from models.errors import ConfigurationError
from models.policy import load_policy
from streams.archive.place import paths_of, s3_secret
from streams.kafka.client import client_options
from streams.settings import KafkaSettings, Settings, load_settings
from streams.settings.reading import unknown_variables
from tests.support.data_files import data_file


def test_short_form_names_the_cluster_beside_other_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """`TURNTIDE_KAFKA` is the bootstrap address and hides no `TURNTIDE_KAFKA__…`."""
    monkeypatch.setenv("TURNTIDE_KAFKA", "broker:9092")
    monkeypatch.setenv("TURNTIDE_KAFKA__PARTITIONS", "7")

    kafka = load_settings().kafka
    monkeypatch.setenv("TURNTIDE_KAFKA__BOOTSTRAP", "named:9092")

    assert (kafka.bootstrap, kafka.partitions) == ("broker:9092", 7)
    assert load_settings().kafka.bootstrap == "named:9092", "the long form says more than the short one"


def test_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the file says counts where the environment is silent."""
    file = tmp_path / "turntide.toml"
    file.write_text('topic_prefix = "from-file"\nlog_format = "json"\n')
    monkeypatch.setenv("TURNTIDE_CONFIG", str(file))
    monkeypatch.setenv("TURNTIDE_TOPIC_PREFIX", "from-environment")

    settings = load_settings()

    assert (settings.topic_prefix, settings.log_format) == ("from-environment", "json")


def test_a_connection_that_cannot_work_is_refused_before_it_is_tried(tmp_path: Path) -> None:
    """SASL without a user, TLS with a file that is no certificate: by the fields' names."""
    broken = tmp_path / "ca.pem"
    broken.write_text("no certificate")

    assert "ssl_context" in client_options(KafkaSettings(security_protocol="SSL"))
    with pytest.raises(ConfigurationError, match="ssl_cafile"):
        client_options(KafkaSettings(security_protocol="SSL", ssl_cafile=broken))
    with pytest.raises(ConfigurationError, match="sasl_username"):
        client_options(KafkaSettings(security_protocol="SASL_SSL"))


_SECRET = "hunter2-hunter2-hunter2"  # noqa: S105 - of nobody


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TURNTIDE_KAFKA", "TURNTIDE_CONFIG", "TURNTIDE_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("TURNTIDE_KAFKA__REPLICATION", _SECRET, ["kafka.replication (TURNTIDE_KAFKA__REPLICATION)", "integer"]),
        ("TURNTIDE_KAFKA__SESSION_TIMEOUT", "ten seconds", ["kafka.session_timeout", "PT30S"]),
        ("TURNTIDE_LOG_FORMAT", "xml", ["log_format (TURNTIDE_LOG_FORMAT)", "'console' or 'json'"]),
        (
            "TURNTIDE_HTTP__TOKENS",
            f'[{{"token": "{_SECRET}"',
            ["http.tokens (TURNTIDE_HTTP__TOKENS): not JSON", f"at character {len(_SECRET) + 14}"],
        ),
        ("TURNTIDE_HTTP__TOKENS", '[{"token": "short"}]', ["http.tokens.0.token (TURNTIDE_HTTP__TOKENS)", "16"]),
        (
            "TURNTIDE_HTTP__TOKENS",
            json.dumps([{"token": _SECRET, "rolle": "admin"}]),
            ["http.tokens.0.rolle", "did you mean role?"],
        ),
        ("TURNTIDE_HTTP__TOKENS", json.dumps([{_SECRET: "admin"}]), ["http.tokens.0 (", "The fields are token, apps"]),
        ("TURNTIDE_ICEBERG__PROPERTIES", f"token={_SECRET}", ["iceberg.properties", "not JSON"]),
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
        ("t.toml", b'[kafka]\nbootstrp = "a:1"\n', "kafka.bootstrp is not a setting: did you mean kafka.bootstrap?"),
        ("t.toml", b'topic_prefx = "x"\n[kafke]\n', "topic_prefx is not a setting: did you mean topic_prefix?; kafke"),
        ("t.toml", b'[kafka]\nbootstrap = "a:1\n', "at line 2"),
        ("t.toml", b"\xff\xfe", "not UTF-8"),
        ("t.yaml", b"kafka:\n  bootstrap: a:1\n", "must be TOML, not .yaml"),
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


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (b"[topics]\nmerge_similarity = 0.5\n", "removed: topics of a session no longer merge"),
        (b"[retrieval]\nsession_sum_weight = 0.1\n", "removed: a search no longer ranks sessions"),
        (
            b"[alerts]\nresolve_after_turn = 3\n",
            "`$.alerts` (did you mean resolve_after_turns?)",
        ),
        (b"[alertz]\n", "did you mean alerts?"),
        (b'[alerts]\nrenotify_after = "half an hour"\n', "$.alerts.renotify_after"),
        (b'[[notify.routes]]\nsinks = ["pager"]\n', "value 'pager' - at `$.notify.routes[0].sinks[0]`"),
        (b"[alerts\n", "at line 1"),
        *((text.encode(), named) for text, named in data_file("policies")["refused"]),
    ],
)
def test_a_wrong_policy_names_its_field(policy: bytes, expected: str) -> None:
    """And what was perhaps meant, in the same section."""
    with pytest.raises(ConfigurationError) as told:
        load_policy(policy, "toml")

    assert expected in str(told.value)


def test_by_default_it_is_in_the_data_directory(tmp_path: Path) -> None:
    """SQLite beside a folder."""
    found = paths_of(load_settings(data_dir=tmp_path))

    assert (found.catalog, found.data) == (tmp_path / "archive" / "catalog.sqlite", f"{tmp_path}/archive/data/")
    assert (found.postgres, found.is_folder, found.shown) == (None, True, str(found.catalog))


def test_postgres_and_s3(tmp_path: Path) -> None:
    """Each word as its own; the password goes by a secret and stands in nothing that is shown."""
    archive = {
        "catalog": "postgresql://o'n%20e@[::1]:5433/a%27b?sslmode=require",
        "catalog_password": "it's",
        "data_path": "s3://bucket/prefix",
        "s3_key_id": "key",
        "s3_secret": "pass'word",
    }
    settings = load_settings(data_dir=tmp_path, archive=archive)
    found = paths_of(settings)

    assert found.postgres is not None
    assert found.postgres.connection == (
        r"host='::1' port='5433' user='o\'n e' dbname='a\'b' sslmode='require' connect_timeout='10'"
    )
    assert found.postgres.secret.endswith("(TYPE postgres, PASSWORD 'it''s')")
    assert (found.shown, found.data, found.is_folder) == ("postgresql://::1/a'b", "s3://bucket/prefix/", False)
    assert "SCOPE 's3://bucket/prefix/'" in s3_secret(found.s3, found.data)
    assert "SECRET 'pass''word'" in s3_secret(found.s3, found.data)
    assert not [word for word in ("it's", "pass'word") if word in f"{found!r} {settings!r}"]


@pytest.mark.parametrize(("archive", "message"), data_file("archive_settings")["wrong"])
def test_what_is_wrong_is_said(archive: dict[str, str], message: str) -> None:
    """At the start, without what may be a password."""
    with pytest.raises(ConfigurationError) as said:
        paths_of(load_settings(archive=archive))

    assert message in str(said.value)
    assert "sesame" not in str(said.value)
