"""Settings from the environment, and what the Kafka clients get of them."""

from __future__ import annotations

from pathlib import Path

import faust
import pytest
from pydantic import SecretStr

from models.errors import ConfigurationError
from streams.kafka.app import credentials
from streams.kafka.client import client_options
from streams.settings import KafkaSettings, load_settings


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TURNTIDE_KAFKA", "TURNTIDE_CONFIG", "TURNTIDE_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


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


def test_sasl_reaches_every_client() -> None:
    """The options of aiokafka and Faust's credentials say the same."""
    kafka = KafkaSettings(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username="turntide",
        sasl_password=SecretStr("hunter2"),
    )

    options = client_options(kafka)
    for_faust = credentials(kafka)

    assert options["sasl_mechanism"] == "PLAIN"
    assert (options["sasl_plain_username"], options["sasl_plain_password"]) == ("turntide", "hunter2")
    assert isinstance(for_faust, faust.SASLCredentials)
    assert (for_faust.username, for_faust.password, for_faust.mechanism.value) == ("turntide", "hunter2", "PLAIN")
    assert for_faust.protocol.value == "SASL_PLAINTEXT"


def test_sasl_without_a_user_is_refused() -> None:
    """A connection that cannot work is refused before it is tried."""
    with pytest.raises(ConfigurationError, match="sasl_username"):
        client_options(KafkaSettings(security_protocol="SASL_SSL"))


def test_tls_uses_the_named_files(tmp_path: Path) -> None:
    """A file that is no certificate is an error that names the fields."""
    broken = tmp_path / "ca.pem"
    broken.write_text("no certificate")

    assert "ssl_context" in client_options(KafkaSettings(security_protocol="SSL"))
    with pytest.raises(ConfigurationError, match="ssl_cafile"):
        client_options(KafkaSettings(security_protocol="SSL", ssl_cafile=broken))
