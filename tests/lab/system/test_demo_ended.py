"""`turntide demo` interrupted and killed: nothing is left behind."""

import signal
from pathlib import Path

import pytest

from models.entities import REGISTRY
from streams.kafka.client import admin
from streams.settings import KafkaSettings
from tests.support.demo_process import WITHIN_S, alive, demo, read_until

pytestmark = pytest.mark.timeout(600)

_INTERRUPTED = 130


async def demo_topics(kafka: str) -> set[str]:
    """Topics of any demo on a cluster."""
    async with admin(KafkaSettings(bootstrap=kafka)) as client:
        return {topic for topic in await client.list_topics() if topic.startswith("demo-")}


async def test_ctrl_c_cleans_up_on_a_cluster_that_was_there_before(tmp_path: Path, kafka: str) -> None:
    """Interrupted in the middle of the play it ends its roles, deletes its topics, and says so and what stays."""
    with demo(tmp_path / "demo", environment={"TURNTIDE_KAFKA": kafka}) as process:
        children = read_until(process, "segment   parcel")
        ours = await demo_topics(kafka)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=WITHIN_S)

    assert process.returncode == _INTERRUPTED
    assert f"stay in {tmp_path / 'demo'}" in told
    assert len(ours) == len(REGISTRY.topics)
    assert await demo_topics(kafka) & ours == set()
    assert alive(children) == []


def test_everything_dies_with_a_demo_that_was_killed(tmp_path: Path) -> None:
    """Kill -9 leaves no chance to clean up: roles and broker notice that their parent is gone."""
    with demo(tmp_path / "demo", environment={}) as process:
        children = read_until(process, "segment   parcel")
        process.kill()

        assert len(children) >= 6
        assert alive(children) == []
