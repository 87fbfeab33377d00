"""`turntide bench topics` with the sessions role on a real broker, tiny sizes. Never how fast anything is."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest

from jobs.lab.bench.machine import BenchEnvironment
from jobs.lab.bench.page import section_of
from jobs.lab.bench.topics import TopicSize, measure
from jobs.lab.eval.topics_dialogues import read_dialogues
from models.policy import load_policy
from streams.settings import load_settings
from streams.wiring import embedder_of, policy_of

pytestmark = [pytest.mark.kafka, pytest.mark.system]


async def test_the_role_runs_with_topics_and_without(kafka: str, tmp_path: Path) -> None:
    """Both take the whole backlog, and the ratio is that of their throughputs."""
    said: list[str] = []
    settings = load_settings()
    size = TopicSize(sessions=1, runs=1, fold_turns=100, role_turns=3_000)

    report = await measure(
        read_dialogues([], {}),
        embedder_of(settings),
        policy_of(settings),
        size,
        environment=nullcontext(BenchEnvironment(kafka, tmp_path)),
        say=said.append,
    )

    role = report["ratio_throughput"]
    assert role is not None
    assert role["ratio"] == pytest.approx(role["with_topics_turns_per_s"] / role["without_topics_turns_per_s"])
    held = section_of("topics", msgspec.to_builtins(report)).held
    assert [figure.value for figure in held if figure.what == "topics: ratio_throughput"] == [role["ratio"]]
    assert [line.split(":")[0].strip() for line in said[-2:]] == [
        "sessions role without topics",
        "sessions role with topics",
    ]
    policies = [load_policy((tmp_path / f"{name}-topics.json").read_bytes(), "json") for name in ("with", "without")]
    assert policies[0] == policy_of(settings)
    assert [policy.topics.enabled for policy in policies] == [True, False]
