"""The server that is asked, and a memory in an app that no other test has."""

import asyncio
import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from turntide import AsyncMemory, Memory


@pytest.fixture(scope="session", autouse=True)
def _served() -> None:
    if "TURNTIDE_URL" not in os.environ:
        pytest.fail("these tests ask a running Turntide: `.ci/clients` starts one and runs them")


@pytest.fixture
def app() -> str:
    """An app of the test's own."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def memory(app: str) -> Iterator[Memory]:
    """Its memory."""
    with Memory(app=app) as made:
        yield made


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest, app: str) -> Iterator[Callable[..., Any]]:
    """A call by its name, by one client or the other."""
    if request.param == "sync":
        with Memory(app=app) as made:
            yield lambda name, *args, **more: getattr(made, name)(*args, **more)
        return
    with asyncio.Runner() as runner:
        other = AsyncMemory(app=app)
        yield lambda name, *args, **more: runner.run(getattr(other, name)(*args, **more))
        runner.run(other.close())
