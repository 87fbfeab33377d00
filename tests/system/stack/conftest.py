"""One system for the scenarios of this folder, started once."""

import asyncio
import uuid
from collections.abc import Iterator
from datetime import timedelta

import pytest

from jobs.operate.topics import apply_topics
from jobs.shared.role_process import RoleProcess
from streams.settings import load_settings
from tests.support.roles_child import RolesProcess
from tests.support.stack import Stack


@pytest.fixture(scope="session")
def stack(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One partition: what a user says in several sessions stays in its order."""
    folder = tmp_path_factory.mktemp("stack")
    settings = load_settings(
        kafka={
            "bootstrap": kafka,
            "partitions": 1,
            "session_timeout": timedelta(seconds=6),
            "heartbeat_interval": timedelta(seconds=1),
        },
        topic_prefix=f"test-stack-{uuid.uuid4().hex[:12]}",
        data_dir=folder / "data",
    )
    asyncio.run(apply_topics(settings))
    roles = RolesProcess(settings, "sessions", "enrich", "index", log=folder / "roles.log")
    memory = RoleProcess("memory", settings, log=folder / "memory.log")
    started = [roles, memory]
    try:
        for role in started:
            role.start()
        for role in started:
            asyncio.run(role.ready())
        yield Stack(settings, roles, memory)
    finally:
        for role in started:
            role.stop()
