"""The rules by Prometheus' own tool: each alert fires by what it is for, and not by what is only just right."""

import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobs.operate.monitoring.boards import BOARDS
from jobs.operate.monitoring.rules import read
from streams.settings.http import HttpSettings
from streams.wiring import ROLES
from tests.support.tools import tool

DEPLOY = Path(__file__).parents[2] / "deploy"
PROMETHEUS = DEPLOY / "prometheus"
TESTS = sorted((PROMETHEUS / "tests").glob("*.yml"))


def said_by(name: str, *words: str) -> str:
    """What a program says of the files; it must be content."""
    done = subprocess.run([str(tool(name)), *words], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_files_are_valid() -> None:
    """Rules, scrape configuration and routes, as the programs that read them see it.

    The token's file is not here, so its being there is not asked for (`--syntax-only`).
    """
    said_by("promtool", "check", "rules", "--lint-fatal", *map(str, sorted((PROMETHEUS / "rules").glob("*.yml"))))
    said_by("promtool", "check", "config", "--syntax-only", str(PROMETHEUS / "prometheus.yml"))
    said_by("amtool", "check-config", str(DEPLOY / "alertmanager" / "alertmanager.yml"))


def test_panels_ask_what_prometheus_reads(tmp_path: Path) -> None:
    """Each expression of a panel, as Prometheus itself parses it."""
    asked = [query.expression for board in BOARDS for panel in board.panels() for query in panel.queries]
    rules = [
        {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, expression in enumerate(asked)
    ]
    (tmp_path / "panels.yml").write_bytes(msgspec.yaml.encode({"groups": [{"name": "panels", "rules": rules}]}))

    assert f"{len(asked)} rules found" in said_by("promtool", "check", "rules", str(tmp_path / "panels.yml"))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_alerts_fire_by_what_they_are_for(path: Path) -> None:
    """Series over minutes to a week, and what fires by them (`promtool test rules`)."""
    assert "SUCCESS" in said_by("promtool", "test", "rules", str(path))


def test_every_alert_is_seen_to_fire() -> None:
    """An alert that no test has seen may never fire; each test expects no others than it names."""
    samples = [
        sample["labels"] + case["expr"]
        for path in TESTS
        for test in _tests(path)
        for case in test.get("promql_expr_test", [])
        for sample in case.get("exp_samples", [])
    ]
    alerts = [
        case["alertname"]
        for path in TESTS
        for test in _tests(path)
        for case in test.get("alert_rule_test", [])
        if case.get("exp_alerts")
    ]

    assert [a.name for a in read(DEPLOY).alerts if not any(a.name in said for said in (*samples, *alerts))] == []


def _tests(path: Path) -> list[dict[str, Any]]:
    return list(msgspec.yaml.decode(path.read_bytes())["tests"])


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ("alertname=TurntideStalled severity=page job=turntide-index", "page"),
        ("alertname=TurntideBacklog severity=ticket job=turntide-index", "ticket"),
        ("alertname=TurntideSessionEscalating severity=critical app_id=shop", "sessions"),
        ("alertname=SomebodyElses", "ticket"),
    ],
)
def test_routes(labels: str, receiver: str) -> None:
    """Pages wake somebody up, tickets do not, and alerts on sessions go to those who look after people."""
    config = f"--config.file={DEPLOY / 'alertmanager' / 'alertmanager.yml'}"

    assert said_by("amtool", "config", "routes", "test", config, *labels.split()).strip() == receiver


def test_every_role_is_scraped_at_its_port() -> None:
    """A role that is added, or a port that is moved, would not be watched."""
    document = msgspec.yaml.decode((PROMETHEUS / "prometheus.yml").read_bytes())
    (scrape,) = (each for each in document["scrape_configs"] if each["job_name"] == "turntide")
    scraped = {name: each["port"] for each in scrape["dns_sd_configs"] for name in each["names"]}

    assert scraped == {role: getattr(HttpSettings(), f"{role}_port") for role in ROLES}
