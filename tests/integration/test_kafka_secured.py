"""TLS and SASL against a broker that asks for them: producer, consumer, admin and a Faust role, each in every way."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiokafka.admin import NewTopic
from aiokafka.structs import ConsumerRecord
from cryptography.hazmat.primitives import serialization
from faust.types import TP

from jobs.operate.broker.local_kafka import LocalKafka
from jobs.shared.role_process import HOST
from models.errors import ConfigurationError, DeliveryFailed, StoreUnavailable
from models.events.topics import TURNS
from streams.kafka.client import admin, read_to_end
from streams.kafka.producer import Producer, Record, acknowledged
from streams.settings import Settings, load_settings
from tests.support.broker_listeners import SASL, Listeners, scram
from tests.support.fault_driver import PlainRole

USER, PASSWORD, WRONG = "turntide", "a-secret-of-the-broker", "a-wrong-secret"


class Secured:
    """One broker with a listener of each kind.

    Attributes:
        ways: Name → settings of `kafka` with which it is reached.
    """

    def __init__(self, folder: Path) -> None:
        ca = trustme.CA()
        files = {"ca": folder / "ca.pem", "cert": folder / "client.pem", "key": folder / "client.key"}
        ca.cert_pem.write_to_path(files["ca"])
        server, client = ca.issue_cert(HOST), ca.issue_cert("client@example.org")
        (folder / "server.pem").write_bytes(
            _pkcs8(server.private_key_pem.bytes()) + b"".join(each.bytes() for each in server.cert_chain_pems)
        )
        client.private_key_pem.write_to_path(files["key"])
        client.cert_chain_pems[0].write_to_path(files["cert"])
        tls = {"ssl_cafile": files["ca"]}
        login = {"sasl_username": USER, "sasl_password": PASSWORD}
        scram = {**login, "sasl_mechanism": "SCRAM-SHA-512"}
        protocols: dict[str, dict[str, Any]] = {
            "SCRAM": {"security_protocol": "SASL_PLAINTEXT", **scram},
            "PLAIN": {"security_protocol": "SASL_PLAINTEXT", **login, "sasl_mechanism": "PLAIN"},
            "TLS": {"security_protocol": "SSL", **tls, "ssl_certfile": files["cert"], "ssl_keyfile": files["key"]},
            "SCRAMTLS": {"security_protocol": "SASL_SSL", **tls, **scram},
        }
        listeners = Listeners({name: way["security_protocol"] for name, way in protocols.items()})
        self.ways = {name: {"bootstrap": f"{HOST}:{listeners.ports[name]}", **way} for name, way in protocols.items()}
        self.broker = LocalKafka(
            folder,
            port=listeners.plain,
            properties={**listeners.properties, **_properties(folder)},
            format_options=(f"--add-scram=SCRAM-SHA-512=[name={USER},password={PASSWORD}]",),
        )


def _pkcs8(key: bytes) -> bytes:
    """A key as Java reads it."""
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    return serialization.load_pem_private_key(key, None).private_bytes(
        encoding, serialization.PrivateFormat.PKCS8, plain
    )


def _properties(folder: Path) -> dict[str, str | int]:
    found: dict[str, str | int] = {
        **scram("SCRAM"),
        **scram("SCRAMTLS"),
        "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plain.plain.sasl.jaas.config": (
            f'{SASL}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        ),
    }
    for name in ("tls", "scramtls"):
        found[f"listener.name.{name}.ssl.keystore.type"] = "PEM"
        found[f"listener.name.{name}.ssl.keystore.location"] = str(folder / "server.pem")
        found[f"listener.name.{name}.ssl.truststore.type"] = "PEM"
        found[f"listener.name.{name}.ssl.truststore.location"] = str(folder / "ca.pem")
    found["listener.name.tls.ssl.client.auth"] = "required"
    return found


class Recorder(PlainRole):
    """A Faust role that writes down what it is given, and ends with the first batch."""

    name = "recorder"
    sources = (TURNS,)

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, http_port=0)
        self.values: list[bytes] = []
        self.done = asyncio.Event()

    async def on_records(self, batches: Mapping[TP, list[ConsumerRecord]]) -> None:
        """Keep the values."""
        self.values += [record.value for records in batches.values() for record in records]
        self.done.set()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The broker, started once."""
    made = Secured(tmp_path_factory.mktemp("secured"))
    with made.broker:
        yield made


def settings_of(secured: Secured, way: str, data_dir: Path, **more: Any) -> Settings:
    """Settings that reach the broker one way."""
    return load_settings(kafka={**secured.ways[way], **more}, topic_prefix=f"by-{way.lower()}", data_dir=data_dir)


@pytest.mark.parametrize("way", ["SCRAM", "TLS", "SCRAMTLS"])
async def test_every_client_gets_through(secured: Secured, way: str, tmp_path: Path) -> None:
    """Admin, producer, consumer, and a role with Faust's own client."""
    settings = settings_of(secured, way, tmp_path)
    topic = TURNS.full_name(settings.topic_prefix)
    async with admin(settings.kafka) as client:
        await client.create_topics([NewTopic(topic, 1, 1)])
    producer = Producer(settings)
    await producer.start()
    await acknowledged(await producer.write(topic, 0, [Record(b"k", b"said")]))
    await producer.stop()
    read = [record.value async for record in read_to_end(settings.kafka, topic)]
    role = Recorder(settings)
    async with asyncio.timeout(90):
        await role.run(role.done)

    assert (read, role.values) == ([b"said"], [b"said"])


@pytest.mark.parametrize("way", ["SCRAM", "PLAIN"])
async def test_a_wrong_password_names_the_setting_and_prints_no_secret(
    secured: Secured, way: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of an admin client and of a producer; what the broker and the libraries say is not passed on blindly."""
    settings = settings_of(secured, way, tmp_path, sasl_password=WRONG)
    with pytest.raises(StoreUnavailable) as asked:
        async with admin(settings.kafka):
            pass
    producer = Producer(settings)
    with pytest.raises(DeliveryFailed) as written:
        await producer.start()
    await producer.stop()

    for error in (asked, written):
        assert "kafka.sasl_username" in str(error.value)
        assert "kafka.sasl_password" in str(error.value)
    told = [f"{error.value!r}{error.value.__cause__!r}" for error in (asked, written)]
    assert WRONG not in f"{told}{caplog.text}{capsys.readouterr()}"


async def test_an_unknown_authority_and_missing_files_name_the_settings(secured: Secured, tmp_path: Path) -> None:
    """A certificate that nobody known has signed is refused; a file that is not there is named."""
    stranger = tmp_path / "stranger.pem"
    trustme.CA().cert_pem.write_to_path(stranger)
    with pytest.raises(StoreUnavailable, match=r"kafka\.ssl_cafile"):
        async with admin(settings_of(secured, "TLS", tmp_path, ssl_cafile=stranger).kafka):
            pass
    with pytest.raises(ConfigurationError, match=r"kafka\.ssl_cafile"):
        async with admin(settings_of(secured, "TLS", tmp_path, ssl_cafile=tmp_path / "none.pem").kafka):
            pass
