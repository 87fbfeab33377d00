"""F10: the disk of the local vector store is full: a clear message, nothing torn, on when there is room."""

import subprocess
import sys
from pathlib import Path

import pytest

from streams.index.collections import TURNS as TURN_POINTS
from streams.index.edge import EdgeStore
from tests.support import edge_child

pytestmark = pytest.mark.fault("F10")

TURNS_TO_INDEX = 60


def run(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A child to its end."""
    return subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", module, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120
    )


async def test_the_local_vector_store_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """What was said to be durable is there, the refused turn can be written again, and the message names the place."""
    full = run(edge_child.__name__, tmp_path, 0, TURNS_TO_INDEX, 1_000)
    durable = len(full.stdout.split())
    store = EdgeStore(tmp_path, embedder="test")
    kept = {payload["turn"] for payload in await store.latest(TURN_POINTS.name, where={}, by="turn", limit=1_000)}
    await store.close()
    roomy = run(edge_child.__name__, tmp_path, durable, TURNS_TO_INDEX, 0)
    store = EdgeStore(tmp_path, embedder="test")
    in_the_end = await store.count(TURN_POINTS.name)
    await store.close()

    assert (full.returncode, roomy.returncode) == (1, 0)
    assert "Check disk space" in full.stderr
    assert str(tmp_path) in full.stderr
    assert set(range(durable)) <= kept
    assert in_the_end == TURNS_TO_INDEX
