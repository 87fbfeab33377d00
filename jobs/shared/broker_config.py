"""Configuration of a single-node Kafka on loopback."""

from __future__ import annotations

import secrets
import socket
from collections import deque
from collections.abc import Mapping
from pathlib import Path

HOST = "127.0.0.1"
PORTS = range(20_000, 32_000)
"""Below every system's ephemeral range: there, a client that retries a killed broker can be given the
broker's own port and connect to itself, and the broker cannot come back."""
_MAX_MESSAGE_BYTES = 8 * 1024 * 1024
_COMPACTION_BUFFER_BYTES = 16 * 1024 * 1024

_given: deque[int] = deque(maxlen=100)
"""Ports that were given last: whoever has one may not have bound it yet."""


def port_is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port(preferred: int | None = None) -> int:
    """`preferred` if it is free, else a random free loopback port that was not given just before."""
    port = preferred or secrets.choice(PORTS)
    while not port_is_free(port) or (port in _given and port != preferred):
        port = secrets.choice(PORTS)
    _given.append(port)
    return port


def server_properties(
    *, broker_port: int, controller_port: int, log_dir: Path, more: Mapping[str, str | int] | None = None
) -> str:
    """Render `server.properties`: KRaft combined mode, one copy of everything, no waiting for others; `more` wins."""
    listeners = f"PLAINTEXT://{HOST}:{broker_port},CONTROLLER://{HOST}:{controller_port}"
    settings: dict[str, str | int | Path] = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": listeners,
        "advertised.listeners": listeners,
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.quorum.bootstrap.servers": f"{HOST}:{controller_port}",
        "log.dirs": log_dir,
        # Topics come from the topic table, and event time lives in the payload: a broker that trusted it
        # as record time would delete old conversations within minutes of their arrival.
        "auto.create.topics.enable": "false",
        "log.message.timestamp.type": "LogAppendTime",
        "message.max.bytes": _MAX_MESSAGE_BYTES,
        "replica.fetch.max.bytes": _MAX_MESSAGE_BYTES,
        "log.cleaner.dedupe.buffer.size": _COMPACTION_BUFFER_BYTES,
        # One node.
        "default.replication.factor": 1,
        "min.insync.replicas": 1,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 4,
        # After a kill -9 the controller takes the new broker only when the old one's session is over.
        "broker.heartbeat.interval.ms": 500,
        "broker.session.timeout.ms": 3000,
        # Groups form at once, and tests may use short session time-outs.
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
    }
    return "".join(f"{key}={value}\n" for key, value in (settings | dict(more or {})).items())


LOG4J2_PROPERTIES = """\
status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{ISO8601} %p %c{1}: %m%n
rootLogger.level=info
rootLogger.appenderRef.out.ref=out
# Hundreds of lines of configuration at every start.
logger.config.name=org.apache.kafka.common.config
logger.config.level=warn
logger.server.name=kafka.server.KafkaConfig
logger.server.level=warn
"""
