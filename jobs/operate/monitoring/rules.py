"""Alert rules as deploy/prometheus/rules has them, and their runbooks: a page for each alert, and the index."""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from models.errors import ConfigurationError

_RULES = Path("prometheus") / "rules"
OPERATORS = Path("prometheus") / "operator.yaml"
"""The same rules for the Prometheus operator of Kubernetes."""
_BY_WHOM = "# Made of rules/ by `turntide ops monitoring write`; do not edit.\n"
RUNBOOKS = "runbooks"
INDEX = "README.md"
HEADINGS = ("Meaning", "Impact", "First three commands", "Next", "Escalate")
"""Of every runbook, in this order."""
FIRST_COMMANDS = 3

_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


class AlertRule(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"name": "alert", "expression": "expr", "waits": "for"},
):
    """One rule of a file, under Prometheus' names: an alert, or a series that is recorded.

    Attributes:
        record: Name of the series that it records; empty for an alert.
        waits: How long it must hold; empty: not at all.
        file: Name of its file.
    """

    expression: str
    name: str = ""
    record: str = ""
    waits: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    file: str = ""


class _RuleGroup(Struct):
    rules: list[AlertRule]


class _RulesFile(Struct):
    groups: list[_RuleGroup]


class MonitoringRules(Struct, frozen=True):
    """Alert rules in the order of files, and recording rules by name."""

    alerts: tuple[AlertRule, ...]
    recorded: dict[str, str]


def read(directory: Path) -> MonitoringRules:
    """Read the rules below `directory`, which is deploy/.

    Raises:
        ConfigurationError: There are none, or a file cannot be read as rules.
    """
    rules = [msgspec.structs.replace(rule, file=file.name) for file in _files(directory) for rule in _rules(file)]
    alerts = tuple(rule for rule in rules if not rule.record)
    return MonitoringRules(alerts, {rule.record: rule.expression for rule in rules if rule.record})


def for_the_operator(directory: Path) -> str:
    """Render all rules as one resource of the Prometheus operator, which reads no files.

    Raises:
        ConfigurationError: There are none.
    """
    groups = [group for file in _files(directory) for group in msgspec.yaml.decode(file.read_bytes())["groups"]]
    resource = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "turntide", "labels": {"app.kubernetes.io/part-of": "turntide"}},
        "spec": {"groups": groups},
    }
    return _BY_WHOM + msgspec.yaml.encode(resource).decode()


def _files(directory: Path) -> list[Path]:
    files = sorted((directory / _RULES).glob("*.yml"))
    if not files:
        raise ConfigurationError(f"no rules in {directory / _RULES}: run this in the repository, or set --directory")
    return files


def _rules(file: Path) -> list[AlertRule]:
    try:
        groups = msgspec.yaml.decode(file.read_bytes(), type=_RulesFile).groups
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"{file} is not a file of rules: {error}; see `promtool check rules`") from error
    return [rule for group in groups for rule in group.rules]


def path_of(alert: str, folder: str = f"deploy/{RUNBOOKS}") -> str:
    """Path of an alert's runbook, as annotations and panels name it."""
    return f"{folder}/{alert}.md"


def commands_in(text: str) -> list[str]:
    """Every command of a runbook's shell blocks; lines that end in a backslash go on, comments are left out."""
    lines = [line for block in _BLOCK.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def section(text: str, heading: str) -> str:
    """Text below one heading."""
    _, _, after = text.partition(f"\n## {heading}\n")
    return after.partition("\n## ")[0]


def meaning(text: str) -> str:
    """First sentence below `Meaning`, on one line."""
    said = " ".join(section(text, "Meaning").split())
    return said.partition(". ")[0].rstrip(".") + "."


def index(directory: Path, alerts: Sequence[AlertRule]) -> str:
    """The runbooks' README: pages first, then tickets, each with what it means."""
    lines = [Path(__file__).with_name("runbooks_head.md").read_text("utf-8")]
    for severity, title in (("page", "Pages: act at any hour"), ("ticket", "Tickets: act in the morning")):
        lines += [f"## {title}\n", "| alert | fires after | meaning |", "|---|---|---|"]
        for alert in alerts:
            if alert.labels.get("severity") == severity:
                page = directory / RUNBOOKS / f"{alert.name}.md"
                said = meaning(page.read_text(encoding="utf-8")) if page.is_file() else "No runbook yet."
                lines.append(f"| [{alert.name}]({alert.name}.md) | {alert.waits or 'at once'} | {said} |")
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"
