"""Statistics of apps' memories: figures, energy since the last poll, and the page."""

from typing import Any

import httpx
import pytest

from tests.support.api_apps import memory, space
from tests.support.api_doubles import Served
from tests.support.report_parts import Outline

HOSTILE = "<script>alert(1)</script>&'\""


@pytest.fixture
def served(served: Served) -> Served:
    """App `a` with two memories that contradict each other, and `b` that has spent more."""
    served.apps.known += [
        memory(1, "at two", conflicts_with=[2], pinned=True),
        memory(2, "at four", conflicts_with=[1]),
        memory(1, "x", app="b", shared_with=["a"]),
    ]
    counts: dict[str, Any] = {"created": 14, "compactions": 4, "skipped": 1, "edited": 2, "waiting": 3}
    served.apps.all_stats += [
        space("a", memories=2, spent_units=260.0, **counts),
        space("b", memories=1, spent_units=300.0, uninstalled=True),
    ]
    return served


@pytest.mark.behaviour("app-10")
@pytest.mark.parametrize(("since", "spent"), [(0, 260.0), (250.5, 9.5), (260, 0.0), (1_000, 260.0)])
async def test_energy_since_the_last_poll(client: httpx.AsyncClient, since: float, spent: float) -> None:
    """`getEnergyConsumedSinceLastPoll`: the caller says what it saw; a space that began anew has spent all it has."""
    found = (await client.get(f"/apps/a/memories/stats?since_units={since}")).json()

    assert found["energy"]["spentSinceUnits"] == spent


@pytest.mark.behaviour("app-30")
async def test_the_page_is_whole_and_loads_nothing(served: Served, client: httpx.AsyncClient) -> None:
    """Every element is closed, a picture for each of the six figures, and neither scripts nor addresses."""
    served.apps.all_stats.append(space(HOSTILE, memories=7, spent_units=1.0))
    answer = await client.get("/apps/statistics", headers={"Accept": "text/html,*/*;q=0.8"})
    outline = Outline(answer.text)
    tags = [tag for tag, _ in outline.tags]

    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert (outline.open, outline.addresses(), tags.count("figure"), "script" in tags) == ([], [], 6, False)
    assert HOSTILE in outline.said
    assert "b (uninstalled)" in outline.said


async def test_the_page_before_there_is_anything(served: Served, client: httpx.AsyncClient) -> None:
    """No pictures of nothing; it says what memories are made of."""
    served.apps.all_stats.clear()
    answer = await client.get("/apps/statistics")

    assert ("<figure" in answer.text, "when conversations end" in answer.text) == (False, True)
