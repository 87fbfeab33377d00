"""`turntide bench scale` on a real broker and tiny sizes: every curve has its points. Never how fast anything is."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from jobs.lab.bench.machine import BenchEnvironment
from jobs.lab.bench.page import section_of
from jobs.lab.bench.scale import ScaleSize, measure
from jobs.lab.bench.scale_folds import POSITIONS

pytestmark = [pytest.mark.kafka, pytest.mark.system]


async def test_every_curve_is_measured(kafka: str, tmp_path: Path) -> None:
    """Two workers share the partitions and take the whole backlog; the page's pictures come from this report."""
    said: list[str] = []
    size = ScaleSize(runs=1, probes=1, sessions=(200,), turns_each=1, passes=1, workers=(2,), backlog_turns=800)

    report = await measure(BenchEnvironment(kafka, tmp_path), size, say=said.append)
    section = section_of("scale", msgspec.to_builtins(report))

    assert [(each["workers"], each["turns_per_s"] > 0) for each in report["workers"]] == [(2, True)]
    assert [each["turn"] for each in report["session_length"]] == list(POSITIONS)
    assert [each["sessions"] for each in report["sessions"]] == [200]
    assert report["notes"] == []
    assert [picture.file.removesuffix(".svg") for picture in section.pictures] == [
        "scale-length",
        "scale-sessions",
        "scale-memory",
        "scale-workers",
    ]
    assert said[0] == "workers, run 1 of 1"
