"""The broker that a command needs: the cluster of the settings, one that runs here, or one started for the while."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs.operate.broker.local_kafka import BrokerError, LocalKafka
from jobs.shared.role_process import HOST, port_is_free
from streams.settings import KafkaSettings, load_settings

_LAST_PORT = 65_535


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM takes the same way out as Ctrl-C, so that everything is cleaned up."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGINT itself may be ignored, in a script
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def broker_for(
    kafka: KafkaSettings, broker: Callable[[], LocalKafka], say: Callable[[str], None]
) -> Iterator[KafkaSettings]:
    """The cluster that is named; else the one of this data directory, started unless it runs, and then ended with us.

    Args:
        kafka: The settings.
        broker: The local one.
        say: Told what is used.

    Raises:
        JarError: Kafka cannot be fetched.
        BrokerError: It does not start.
    """
    if "bootstrap" in kafka.model_fields_set:
        say(f"using {kafka.bootstrap}, as the settings name it")
        yield kafka
        return
    local = broker()
    if running := local.running():
        say(f"using {running.bootstrap}, which runs already and stays")
        yield kafka.model_copy(update={"bootstrap": running.bootstrap})
        return
    say("starting Apache Kafka")
    with local:
        yield kafka.model_copy(update={"bootstrap": local.bootstrap})


def usual_port(data_dir: Path, option: str) -> int | None:
    """The port that this data had before, else that at which other commands look; None where these look elsewhere.

    Args:
        data_dir: Of the broker.
        option: Command line that takes another port.

    Raises:
        BrokerError: Another program has it.
    """
    broker = LocalKafka(data_dir)
    before = broker.record()
    address = before.bootstrap if before else load_settings().kafka.bootstrap
    host, _, port = address.partition(":")
    if host != HOST or not port.isdigit():
        return None
    if not port_is_free(int(port)) and not broker.running():
        free = next(each for each in range(int(port) + 1, _LAST_PORT) if port_is_free(each))
        raise BrokerError(
            f"port {port} on {HOST} is in use by another program, perhaps another Kafka: nothing is started. Choose "
            f"another port with `{option} {free}`; later commands find it. To use the program on this port as the "
            f"broker, set TURNTIDE_KAFKA={address}"
        )
    return int(port)
