"""`turntide demo` as a newcomer runs it: the real command, a real broker, real roles, and nothing left behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import chromium
from tests.support.demo_process import WITHIN_S, alive, demo, line_with, read_until
from tests.support.tools import has

pytestmark = [pytest.mark.kafka, pytest.mark.system, pytest.mark.timeout(600)]


@contextmanager
def live_page(url: str) -> Iterator[Page | None]:
    """The queue of alerts in a browser; None, and a warning, where there is none (see `tests.support.tools.has`)."""
    if not has("chromium"):
        yield None
        return
    with chromium() as browser, browser.new_page() as page:
        page.goto(f"{url}#/alerts?show=all")
        yield page


def see_alert(page: Page, url: str) -> None:
    """The alert came to a page that was open before it; its session shows what it rests on."""
    row = page.locator(".rows .row", has_text="demand")
    expect(row).to_be_visible(timeout=WITHIN_S * 1000)
    expect(row).to_contain_text("critical")
    page.goto(f"{url}#/session/demand")
    expect(page.locator(".alert-card .bars li").first).to_be_visible(timeout=WITHIN_S * 1000)
    expect(page.get_by_role("img", name="1 alert")).to_be_visible(timeout=WITHIN_S * 1000)
    page.get_by_role("button", name="Show text").click()
    expect(page.locator(".turns .rows .row")).not_to_have_count(0)
    page.locator(".turns .rows .row").first.click()
    expect(page.get_by_role("region", name="Selected turn").locator(".text")).not_to_be_empty()


def test_plays_to_its_end_and_leaves_only_files(tmp_path: Path) -> None:
    """The expected alerts, memories of every kind and right answers, everything archived, and no process."""
    data_dir = tmp_path / "demo"
    with demo(data_dir, "--speed", "10", environment={}) as process:
        url = line_with(process, "page ").split()[-1]
        with live_page(url) as page:
            children = read_until(process, "alert     demand: raised")
            if page is not None:
                see_alert(page, url)
        stdout, stderr = process.communicate(timeout=WITHIN_S)

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


def test_a_used_folder_is_refused(tmp_path: Path) -> None:
    """Another run's archive must not be mixed with this one's."""
    (tmp_path / "something").touch()
    with demo(tmp_path, environment={}) as process:
        _, stderr = process.communicate(timeout=WITHIN_S)

    assert process.returncode == 2
    assert "is not empty" in stderr
