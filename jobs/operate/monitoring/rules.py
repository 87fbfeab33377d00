"""The rules as they stand in deploy/prometheus/rules, read."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from models.errors import ConfigurationError

FOLDER = Path("prometheus") / "rules"
OPERATORS = Path("prometheus") / "operator.yaml"
"""The same rules for the Prometheus operator of Kubernetes."""
_BY_WHOM = "# Made of rules/ by `turntide monitoring write`; do not edit.\n"


class AlertRule(Struct, frozen=True, kw_only=True):
    """One alert rule.

    Attributes:
        waits: How long it must hold; empty: not at all.
    """

    name: str
    expression: str
    waits: str
    labels: dict[str, str]
    annotations: dict[str, str]
    file: str


class _Rule(Struct, forbid_unknown_fields=True):
    expr: str
    alert: str = ""
    record: str = ""
    waits: str = msgspec.field(default="", name="for")
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _RuleGroup(Struct):
    rules: list[_Rule]


class _RulesFile(Struct):
    groups: list[_RuleGroup]


class MonitoringRules(Struct, frozen=True):
    """All of them: alerts in the order of files, and what is recorded, by name."""

    alerts: tuple[AlertRule, ...]
    recorded: dict[str, str]


def read(directory: Path) -> MonitoringRules:
    """Read the rules below `directory`, which is deploy/.

    Raises:
        ConfigurationError: There are none, or a file cannot be read as rules.
    """
    alerts: list[AlertRule] = []
    recorded: dict[str, str] = {}
    for file in _files(directory):
        for rule in _rules(file):
            if rule.record:
                recorded[rule.record] = rule.expr
            else:
                alerts.append(_alert(rule, file))
    return MonitoringRules(tuple(alerts), recorded)


def for_the_operator(directory: Path) -> str:
    """All rules as one resource of the Prometheus operator, which reads no files.

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
    files = sorted((directory / FOLDER).glob("*.yml"))
    if not files:
        raise ConfigurationError(f"no rules in {directory / FOLDER}: run it in the repository, or say --directory")
    return files


def _rules(file: Path) -> list[_Rule]:
    try:
        groups = msgspec.yaml.decode(file.read_bytes(), type=_RulesFile).groups
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"{file} is no file of rules: {error}; `promtool check rules` says more") from error
    return [rule for group in groups for rule in group.rules]


def _alert(rule: _Rule, file: Path) -> AlertRule:
    return AlertRule(
        name=rule.alert,
        expression=rule.expr,
        waits=rule.waits,
        labels=rule.labels,
        annotations=rule.annotations,
        file=file.name,
    )
