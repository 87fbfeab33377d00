"""Readiness of a broker, asked with a real metadata request."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

_CONNECT_SECONDS = 1.0
_REQUEST_MILLISECONDS = 10_000


def answers(bootstrap: str) -> bool:
    """Whether the broker at `host:port` answers a metadata request and knows of a node.

    May also be called while an event loop runs in this thread.
    """
    host, _, port = bootstrap.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except OSError:
        return False
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _names_a_node(bootstrap)).result()


async def _names_a_node(bootstrap: str) -> bool:
    from aiokafka.client import AIOKafkaClient
    from aiokafka.errors import KafkaError

    client = AIOKafkaClient(bootstrap_servers=bootstrap, request_timeout_ms=_REQUEST_MILLISECONDS)
    try:
        await client.bootstrap()
        return bool(client.cluster.brokers())
    except KafkaError:
        return False
    finally:
        await client.close()
