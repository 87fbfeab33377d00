"""The image's health check against roles that answer, fail or are not there."""

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from runpy import run_path

import pytest

from streams.http.health import serve
from tests.support.http_api import api_of
from tests.support.manifests import CONTAINER


@pytest.mark.parametrize(
    ("alive", "said"),
    [
        ([(True, "ok")], None),
        ([(True, "ok"), (False, "turns-3 stands still")], "turns-3 stands still"),
        ([], "no role"),
    ],
    ids=["alive", "one of two stands still", "none"],
)
async def test_health_check_tells_what_is_wrong(alive: list[tuple[bool, str]], said: str | None) -> None:
    """Healthy is who has a role that moves, and none that does not."""
    trouble = run_path(str(CONTAINER / "livez.py"))["trouble"]
    async with AsyncExitStack() as stack:
        ports = [1]  # nobody listens there
        ports += [await stack.enter_async_context(serve(api_of(alive=partial(tuple, each)))) for each in alive]
        found = await asyncio.to_thread(trouble, ports)

    assert found is None if said is None else said in found
