"""Rules, dashboards and runbooks are in step with the catalogue; what is out of step is found."""

import json
import re
import shlex
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from typer.main import get_command
from typer.testing import CliRunner

from jobs.cli import app as turntide
from jobs.operate.monitoring.boards import BOARDS, MonitoringBoard, Panel, PanelRow, Query
from jobs.operate.monitoring.checks import findings
from jobs.operate.monitoring.command import app as monitoring
from jobs.operate.monitoring.command import documents, drift
from jobs.operate.monitoring.expressions import WrongExpression, labels_of
from jobs.operate.monitoring.rules import MonitoringRules, commands_in, read
from tests.support.data_files import data_file

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = read(DEPLOY)
RUNBOOKS = sorted((DEPLOY / "runbooks").glob("Turntide*.md"))
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
LIKED = RULES.alerts[0]


def test_everything_is_in_step() -> None:
    """No metric that there is not, no alert without runbook or panel, no metric that nobody sees, no file by hand."""
    assert findings(RULES, BOARDS, DEPLOY) == []
    assert drift(DEPLOY) == {}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"expression": "turntide_gone_total > 0"}, "no series 'turntide_gone_total'"),
        ({"expression": "turntide_stage_seconds > 1"}, "no series 'turntide_stage_seconds'"),
        ({"expression": 'turntide_ready{session="s"} == 0'}, "turntide_ready has no label session"),
        ({"expression": "sum by (topic) (turntide_ready) == 0"}, "has no label topic"),
        ({"expression": "sum by (job) (turntide_ready) > turntide_ready"}, "its sides never match"),
        ({"expression": "sum by (job"}, "is not PromQL"),
        ({"expression": 'turntide_audit_records_total{result="failed"} > 0'}, 'has no result="failed"'),
        ({"expression": "sum(up) == 0"}, "its annotations name labels that it has not: job"),
        ({"labels": {"severity": "urgent"}}, "severity must be one of page, ticket"),
        ({"annotations": {**LIKED.annotations, "runbook_url": "x.md"}}, "runbook_url must be deploy/runbooks/"),
        ({"annotations": {**LIKED.annotations, "summary": ""}}, "the annotation summary is missing"),
        ({"name": "TurntideNew"}, "no panel explains it"),
        ({"name": "TurntideNew"}, "is missing"),
        ({"name": "TurntideNew"}, "belongs to no alert"),
        ({"name": "TurntideNew"}, f"explains {LIKED.name}, which is no alert"),
        ({"name": "Other"}, "does not begin with Turntide"),
    ],
)
def test_a_rule_out_of_step_is_found(changes: dict[str, Any], what: str) -> None:
    """Each fault of an alert is named, so that its author need not look for it."""
    altered = MonitoringRules((msgspec.structs.replace(LIKED, **changes), *RULES.alerts[1:]), RULES.recorded)
    said = [finding.what for finding in findings(altered, BOARDS, DEPLOY)]

    assert [each for each in said if what in each] != []


@pytest.mark.parametrize(
    ("panel", "what"),
    [
        (Panel(title="p", queries=(Query("turntide_gone"),)), "no series 'turntide_gone'"),
        (Panel(title="p", queries=(Query("sum by (sink) (rate(turntide_ready[5m]))"),)), "has no label sink"),
        (
            Panel(title="p", queries=(Query("sum by (job) (turntide_ready)", "{{topic}}"),)),
            "its legend names labels that",
        ),
        (Panel(title="p", queries=(Query("up"),), alerts=("TurntideHttpSlow",)), "shows nothing that it asks for"),
    ],
)
def test_a_panel_out_of_step_is_found(panel: Panel, what: str) -> None:
    """A panel that would stay empty, or that explains what it does not show."""
    board = MonitoringBoard(uid="u", title="t", description="d", rows=(PanelRow("r", (panel,)),))
    said = [finding.what for finding in findings(RULES, (*BOARDS, board), DEPLOY) if finding.where == "u: p"]

    assert len(said) == 1
    assert what in said[0]


def test_a_metric_that_nobody_sees_is_found() -> None:
    """Each metric of the catalogue has a panel."""
    fewer = tuple(board for board in BOARDS if board.uid != "turntide-memory")
    said = {finding.where: finding.what for finding in findings(RULES, fewer, DEPLOY)}

    assert said["fact_changes_total"].startswith("no panel shows it")


def test_a_runbook_out_of_step_is_found(tmp_path: Path) -> None:
    """Headings in their order, three first commands, and a page for each alert alone."""
    (tmp_path / "runbooks").mkdir()
    good = (DEPLOY / "runbooks" / f"{LIKED.name}.md").read_text()
    alone = MonitoringRules((LIKED,), {})

    def said(text: str) -> list[str]:
        (tmp_path / "runbooks" / f"{LIKED.name}.md").write_text(text)
        return [each.what for each in findings(alone, BOARDS, tmp_path) if each.where.startswith("runbooks/")]

    assert said(good) == []
    assert said(good.replace("## Impact", "## Effect")) == [
        "its headings must be Meaning, Impact, First three commands, Next, Escalate"
    ]
    assert said(good.replace("turntide doctor\n", "", 1)) == ["must name 3 first commands in a block of sh"]
    assert said(good.replace(f"# {LIKED.name}", "# Other", 1)) == [f"must begin with # {LIKED.name}"]


KNOWN = {"a_total": frozenset({"job", "x"}), "b": frozenset({"job"}), "h_bucket": frozenset({"job", "le"})}


@pytest.mark.parametrize(("expression", "labels"), data_file("monitoring")["joined"])
def test_labels_of_a_result(expression: str, labels: str) -> None:
    """As Prometheus joins and aggregates."""
    assert labels_of(expression, KNOWN) == frozenset(labels.split())


@pytest.mark.parametrize(
    "expression",
    ["a_total / b", "histogram_quantile(0.9, b)", "b and on (x) a_total", "a_total and on (x) b", "sum by (x) (b)"],
)
def test_what_can_never_match_is_refused(expression: str) -> None:
    """Prometheus would answer with nothing, and the alert would never fire."""
    with pytest.raises(WrongExpression):
        labels_of(expression, KNOWN)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_dashboards_are_grafanas(path: Path) -> None:
    """Grafana's own model of a dashboard reads each without losing a field, and no two panels lie on one another."""
    text = path.read_text(encoding="utf-8")
    read_back = JSONEncoder(sort_keys=True, indent=2).encode(Dashboard.from_json(json.loads(text))) + "\n"
    panels = json.loads(text)["panels"]

    assert read_back == text
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert [one["title"] for one, other in combinations(panels, 2) if _overlap(one["gridPos"], other["gridPos"])] == []
    assert {panel["datasource"]["uid"] for panel in panels if panel["type"] != "row"} == {"${datasource}"}


def _overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    return (
        one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    )


@pytest.mark.parametrize("path", RUNBOOKS, ids=lambda path: path.stem)
def test_commands_of_runbooks_can_be_given(path: Path) -> None:
    """Whoever is woken up copies them: each `turntide` command parses, with its options and their values."""
    text = path.read_text(encoding="utf-8")
    shown = [*commands_in(text), *(c for c in re.findall(r"`(turntide [^`]+)`", text) if "…" not in c)]
    wrong = [command for command in shown if command.startswith("turntide ") and not _parses(command)]

    assert wrong == []


def _parses(command: str) -> bool:
    """Whether the command line takes it; nothing is run."""
    group, words = get_command(turntide), shlex.split(command)[1:]
    context = group.make_context("turntide", [words[0]], resilient_parsing=True)
    try:
        while hasattr(group, "resolve_command"):
            _, found, words = group.resolve_command(context, words)
            group = found
        options = [word for word in words if word.startswith("--")]
        taken = {name for parameter in group.params for name in (*parameter.opts, *parameter.secondary_opts)}
        return set(options) <= taken and group.make_context("x", words, resilient_parsing=False) is not None
    except Exception:  # noqa: BLE001 - whatever it says, the command is not to be copied
        return False


def test_write_and_check(tmp_path: Path) -> None:
    """`write` mends what `check` finds: a missing file, a changed one, one left over."""
    shown = tmp_path / "deploy"
    for part in ("prometheus/rules", "runbooks"):
        (shown / part).mkdir(parents=True)
        for path in (DEPLOY / part).iterdir():
            (shown / part / path.name).write_bytes(path.read_bytes())
    (shown / "runbooks" / "README.md").write_text("by hand")
    (shown / "grafana" / "dashboards").mkdir(parents=True)
    (shown / "grafana" / "dashboards" / "old.json").write_text("{}")

    def run(*words: str) -> tuple[int, Any]:
        result = CliRunner().invoke(monitoring, [*words, "--directory", str(shown), "--output", "json"])
        return result.exit_code, json.loads(result.stdout)

    code, found = run("check")
    assert code == 1
    assert {(each["where"], each["what"].partition(":")[0]) for each in found} >= {
        ("runbooks/README.md", "changed"),
        ("grafana/dashboards/old.json", "left over"),
        ("grafana/dashboards/turntide-role.json", "missing"),
    }
    assert run("write")[0] == 0
    assert run("check") == (0, [])
    assert documents(shown) == documents(DEPLOY)


def test_no_rules_is_said(tmp_path: Path) -> None:
    """Outside of the repository the command says what it needs; a broken file is named."""
    result = CliRunner().invoke(monitoring, ["check", "--directory", str(tmp_path)])
    assert "set --directory" in str(result.exception)
    (tmp_path / "prometheus" / "rules").mkdir(parents=True)
    misspelt = "groups:\n- name: x\n  rules:\n  - {alert: TurntideX, expr: up, fro: 5m}\n"  # it would fire at once
    for text, told in (("groups: 3", "x.yml is not a file of rules"), (misspelt, "fro")):
        (tmp_path / "prometheus" / "rules" / "x.yml").write_text(text)
        result = CliRunner().invoke(monitoring, ["check", "--directory", str(tmp_path)])
        assert told in str(result.exception)
