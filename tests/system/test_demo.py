"""`turntide demo` as a newcomer runs it: the real command, a real broker, real roles, and nothing left behind."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.demo_process import WITHIN_S, alive, demo, line_with, read_until

pytestmark = pytest.mark.timeout(600)


@pytest.mark.behaviour("card-06")
def test_plays_to_its_end_and_leaves_only_files(tmp_path: Path) -> None:
    """The expected alerts, memories of every kind and right answers, everything archived, and no process."""
    data_dir = tmp_path / "demo"
    with demo(data_dir, "--speed", "10", environment={}) as process:
        url = line_with(process, "page ").split()[-1]
        children = read_until(process, "alert     demand: raised")
        page = httpx.get(url.partition("#")[0])
        stdout, stderr = process.communicate(timeout=WITHIN_S)

    assert stdout, stderr
    assert (page.status_code, page.headers["content-type"].partition(";")[0]) == (200, "text/html")
    summary: dict[str, Any] = json.loads(stdout)
    assert (summary["problems"], process.returncode) == ([], 0), stderr
    assert summary["alerts_raised"] == summary["alerts_expected"] == ["account", "demand"]
    causes = {alert["session_id"]: alert["causes"] for alert in summary["alerts"]}
    assert {session: (of[0], of[-1]) for session, of in causes.items()} == dict.fromkeys(
        ("account", "demand"), ("raised", "resolved")
    )
    assert ["acknowledged" in causes[session] for session in ("account", "demand")] == [False, True]
    slow = next(alert for alert in summary["alerts"] if alert["session_id"] == "account")
    assert 8 < slow["turn"] < slow["turns_of_session"] / 2  # nothing before the refusal
    assert slow["gravest"]["escalation"]["probability"] >= slow["gravest"]["escalation"]["threshold"]
    assert summary["figures"]["turns"] == "732 in 21 sessions, 1 still open"
    name, databases = summary["answers"]["recalled"]
    assert name["facts"]["identity/name"] == "Alexander"
    assert databases["nearest_episode"]["turn_range"] == "turns 1-20"
    assert "database" in databases["turn"]
    assert min(databases["because"].values()) > 0
    project = summary["answers"]["project"]
    assert min(len(project["memories"]), project["superseded"], len(project["key_moments"])) > 1
    assert [answer["when"] for answer in project["answers"] if "Kubernetes in Frankfurt" in answer["said"]] == [
        "before turn 148"
    ]
    assert summary["answers"]["erased"]["proof"]["stores"]
    assert summary["archive"]["findings"] == []
    assert summary["archive"]["rows"] > summary["turns"]
    assert summary["archive"]["json_to_parquet_ratio"] > 1
    assert "Turntide report" in Path(summary["report"]).read_text("utf-8")
    parquet = [p for p in data_dir.rglob("archive/data/**/*.parquet") if {"offsets", "skipped"}.isdisjoint(p.parts)]
    assert len(parquet) == summary["archive"]["files"]
    assert len(children) >= 6  # five roles and the broker
    assert alive(children) == []
