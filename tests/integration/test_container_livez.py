"""The image's health check against roles that answer, fail or are not there."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from runpy import run_path

import pytest
from prometheus_client import CollectorRegistry

from streams.http.health import create_api, serve
from tests.support.manifests import CONTAINER


def _answer(given: tuple[bool, str]) -> tuple[bool, str]:
    return given


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
        for answer in alive:
            api = create_api(
                ready=lambda: (True, "ready"), alive=partial(_answer, answer), registry=CollectorRegistry()
            )
            ports.append(await stack.enter_async_context(serve(api)))
        found = await asyncio.to_thread(trouble, ports)

    assert found is None if said is None else said in found
