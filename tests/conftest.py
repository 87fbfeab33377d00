"""Fixtures of all suites: no network below `unit` and `property`, one real broker for the rest."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from pytest_socket import disable_socket, enable_socket

from jobs.broker.local_kafka import LocalKafka
from jobs.broker.ready import answers

# A busy machine must not fail a property: timings are never asserted.
hypothesis.settings.register_profile("turntide", deadline=None)
hypothesis.settings.load_profile("turntide")

_HERE = Path(__file__).parent
_WITHOUT_NETWORK = (_HERE / "unit", _HERE / "property")


@pytest.fixture(autouse=True)
def _network_only_where_meant(request: pytest.FixtureRequest) -> Iterator[None]:
    """Refuse sockets to unit and property tests; the pair an event loop wakes itself with is allowed."""
    if not any(request.path.is_relative_to(folder) for folder in _WITHOUT_NETWORK):
        yield
        return
    disable_socket(allow_unix_socket=True)
    yield
    enable_socket()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap address of a real broker: the one `TURNTIDE_KAFKA` names, else one of this session's own."""
    if existing := os.environ.get("TURNTIDE_KAFKA"):
        if not answers(existing):
            pytest.fail(f"no broker answers at TURNTIDE_KAFKA={existing}: start it or unset the variable")
        yield existing
        return
    with LocalKafka(tmp_path_factory.mktemp("broker")) as broker:
        yield broker.bootstrap


@pytest.fixture
def topic_prefix() -> str:
    """Return a prefix for topics and groups that no other test has."""
    return f"test-{uuid.uuid4().hex[:12]}"
