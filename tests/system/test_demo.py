"""`turntide demo` as a newcomer runs it: the real command, a real broker, real roles, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Page, expect

from models.entities import REGISTRY
from streams.kafka.client import admin
from streams.settings import KafkaSettings
from tests.browser.chromium import chromium
from tests.tools import has

pytestmark = [pytest.mark.kafka, pytest.mark.system, pytest.mark.timeout(600)]

_ROOT = Path(__file__).parents[2]
_WITHIN_S = 400
_INTERRUPTED = 130


@contextmanager
def demo(data_dir: Path, *options: str, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The command as a process of its own; killed if the test fails."""
    command = [sys.executable, "-m", "jobs.cli", "demo", "--data-dir", str(data_dir), "--output", "json", *options]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TURNTIDE_")}
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, cwd=_ROOT, env={**kept, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def line_with(process: subprocess.Popen[str], said: str) -> str:
    """Wait until the command says something on standard error, and return the line."""
    assert process.stderr
    for line in process.stderr:
        if said in line:
            return line
    pytest.fail(f"the demo ended with {process.wait()} before it said {said!r}")


def read_until(process: subprocess.Popen[str], said: str) -> list[psutil.Process]:
    """Wait until the command says something on standard error, and return the processes below it."""
    line_with(process, said)
    children: list[psutil.Process] = psutil.Process(process.pid).children(recursive=True)
    return children


@contextmanager
def live_page(url: str) -> Iterator[Page | None]:
    """The queue of alerts in a browser; None, and a warning, where there is none (see `tests.tools.has`)."""
    if not has("chromium"):
        yield None
        return
    with chromium() as browser, browser.new_page() as page:
        page.goto(f"{url}#/alerts?show=all")
        yield page


def see_alert(page: Page, url: str) -> None:
    """The alert came to a page that was open before it; its session shows what it rests on."""
    row = page.locator(".rows .row", has_text="demand")
    expect(row).to_be_visible(timeout=_WITHIN_S * 1000)
    expect(row).to_contain_text("critical")
    page.goto(f"{url}#/session/demand")
    expect(page.locator(".alert-card .bars li").first).to_be_visible(timeout=_WITHIN_S * 1000)
    expect(page.get_by_role("img", name="1 alert")).to_be_visible(timeout=_WITHIN_S * 1000)
    page.get_by_role("button", name="Show text").click()
    expect(page.locator(".turns .rows .row")).not_to_have_count(0)
    page.locator(".turns .rows .row").first.click()
    expect(page.get_by_role("region", name="Selected turn").locator(".text")).not_to_be_empty()


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended within half a minute."""
    _, left = psutil.wait_procs(processes, timeout=30)
    return [process for process in left if process.status() != psutil.STATUS_ZOMBIE]


def test_plays_to_its_end_and_leaves_only_files(tmp_path: Path) -> None:
    """The expected alerts, memories of every kind and right answers, everything archived, and no process."""
    data_dir = tmp_path / "demo"
    with demo(data_dir, "--speed", "10", environment={}) as process:
        url = line_with(process, "page ").split()[-1]
        with live_page(url) as page:
            children = read_until(process, "alert     demand: raised")
            if page is not None:
                see_alert(page, url)
        stdout, stderr = process.communicate(timeout=_WITHIN_S)

    assert process.returncode == 0, stderr
    summary: dict[str, Any] = json.loads(stdout)
    assert summary["problems"] == []
    assert summary["alerts_raised"] == summary["alerts_expected"] == ["account", "demand"]
    causes = {alert["session_id"]: alert["causes"] for alert in summary["alerts"]}
    assert {session: (of[0], of[-1]) for session, of in causes.items()} == dict.fromkeys(
        ("account", "demand"), ("raised", "resolved")
    )
    assert ["acknowledged" in causes[session] for session in ("account", "demand")] == [False, True]
    slow = next(alert for alert in summary["alerts"] if alert["session_id"] == "account")
    assert slow["turn"] < slow["turns_of_session"] / 2
    assert slow["gravest"]["escalation"]["probability"] >= slow["gravest"]["escalation"]["threshold"]
    assert summary["figures"]["turns"] == "732 in 21 sessions, 1 still open"
    name, databases = summary["answers"]["recalled"]
    assert name["facts"]["identity/name"] == "Alexander"
    assert databases["nearest_episode"]["turn_range"] == "turns 1-20"
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


async def test_ctrl_c_cleans_up_on_a_cluster_that_was_there_before(tmp_path: Path, kafka: str) -> None:
    """Interrupted in the middle of the play it ends its roles, deletes its topics, and says so and what stays."""
    with demo(tmp_path / "demo", environment={"TURNTIDE_KAFKA": kafka}) as process:
        children = read_until(process, "segment   parcel")
        ours = await demo_topics(kafka)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=_WITHIN_S)

    assert process.returncode == _INTERRUPTED
    assert f"stays in {tmp_path / 'demo'} until you remove it" in told
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


def test_a_used_folder_is_refused(tmp_path: Path) -> None:
    """Another run's archive must not be mixed with this one's."""
    (tmp_path / "something").touch()
    with demo(tmp_path, environment={}) as process:
        _, stderr = process.communicate(timeout=_WITHIN_S)

    assert process.returncode == 2
    assert "is not empty" in stderr


async def demo_topics(kafka: str) -> set[str]:
    """Topics of any demo on a cluster."""
    async with admin(KafkaSettings(bootstrap=kafka)) as client:
        return {topic for topic in await client.list_topics() if topic.startswith("demo-")}
