"""One system for the scenarios of this folder, started once, and stopped when the last one is over."""

import asyncio
import uuid
from datetime import timedelta
from pathlib import Path

import pytest

from jobs.operate.topics import apply_topics
from jobs.shared.role_process import RoleProcess
from streams.settings import load_settings
from tests.support.roles_child import RolesProcess
from tests.support.stack import Stack

_STARTED: list[RoleProcess] = []


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Roles that nobody asks any more would poll until the run ends."""
    if nextitem is None or not nextitem.path.is_relative_to(Path(__file__).parent):
        while _STARTED:
            _STARTED.pop().stop()


@pytest.fixture(scope="session")
def stack(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Stack:
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
    for role in (roles, memory):
        _STARTED.append(role)
        role.start()
    for role in _STARTED:
        asyncio.run(role.ready())
    return Stack(settings, roles, memory)
