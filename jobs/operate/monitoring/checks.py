"""Consistency checks between catalogue, rules, dashboards and runbooks. Pure but for reading the runbooks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jobs.operate.monitoring import expressions
from jobs.operate.monitoring.boards import MonitoringBoard, Panel
from jobs.operate.monitoring.rules import (
    FIRST_COMMANDS,
    HEADINGS,
    INDEX,
    RUNBOOKS,
    AlertRule,
    MonitoringRules,
    commands_in,
    path_of,
    section,
)
from models.metrics import METRICS

SEVERITIES = ("page", "ticket")
_OPEN_LABELS = frozenset({"partition", "route", "sink", "topic", "version"})
"""Their values are of the installation; those of all others stand in the catalogue's texts."""

_LEGEND_LABEL = re.compile(r"{{\s*(\w+)\s*}}")
_TEMPLATE_LABEL = re.compile(r"\$labels\.(\w+)")


class CheckFinding(NamedTuple):
    """Inconsistency and its place."""

    where: str
    what: str


def findings(rules: MonitoringRules, boards: Sequence[MonitoringBoard], directory: Path) -> list[CheckFinding]:
    """Inconsistencies, in order; `directory` is deploy/."""
    found: list[CheckFinding] = []
    known = _recorded(rules, found)
    for alert in rules.alerts:
        found += [CheckFinding(f"{alert.file}: {alert.name}", what) for what in _of_alert(alert, known)]
        found += [CheckFinding(f"{RUNBOOKS}/{alert.name}.md", what) for what in _of_runbook(alert, directory)]
    for board in boards:
        for panel in board.panels():
            found += [CheckFinding(f"{board.uid}: {panel.title}", what) for what in _of_panel(panel, known, rules)]
    explained = {name for board in boards for panel in board.panels() for name in panel.alerts}
    found += [
        CheckFinding(f"{each.file}: {each.name}", "no panel explains it")
        for each in rules.alerts
        if each.name not in explained
    ]
    shown = {name for board in boards for panel in board.panels() for name in _series_of(panel, rules)}
    found += [
        CheckFinding(each.name, "no panel shows it: add one to boards.toml")
        for each in METRICS
        if not shown & set(expressions.names_of(each))
    ]
    return found + _left_over(rules, directory)


def _recorded(rules: MonitoringRules, found: list[CheckFinding]) -> dict[str, expressions.Labels]:
    """Every series there is; rules record from one another in the order of the file."""
    known = dict(expressions.SERIES)
    for name, expression in rules.recorded.items():
        try:
            known[name] = expressions.labels_of(expression, known)
        except expressions.WrongExpression as error:
            found.append(CheckFinding(f"recorded: {name}", str(error)))
            known[name] = frozenset()
    return known


def _of_alert(alert: AlertRule, known: Mapping[str, expressions.Labels]) -> Iterator[str]:
    if not alert.name.startswith("Turntide"):
        yield "its name does not begin with Turntide"
    if alert.labels.get("severity") not in SEVERITIES:
        yield f"severity must be one of {', '.join(SEVERITIES)}"
    if alert.annotations.get("runbook_url") != path_of(alert.name):
        yield f"runbook_url must be {path_of(alert.name)}"
    for name in ("summary", "description"):
        if not alert.annotations.get(name):
            yield f"the annotation {name} is missing"
    try:
        labels = expressions.labels_of(alert.expression, known)
    except expressions.WrongExpression as error:
        yield str(error)
        return
    named = {label for text in alert.annotations.values() for label in _TEMPLATE_LABEL.findall(text)}
    if missing := named - labels:
        yield f"its annotations name labels that it has not: {', '.join(sorted(missing))}"
    yield from _undocumented(alert.expression)


def _undocumented(expression: str) -> Iterator[str]:
    """Values of labels that the catalogue does not speak of: a series by such a one may never come to be."""
    for name, label, value in expressions.values_asked(expression):
        metric = expressions.METRIC_NAMED.get(name)
        if metric is None or label not in metric.labels or label in _OPEN_LABELS:
            continue
        if not re.search(rf"\b{value}\b", f"{metric.help} {metric.what_to_do}"):
            yield f'{name} has no {label}="{value}" by what the catalogue says of it'


def _of_runbook(alert: AlertRule, directory: Path) -> Iterator[str]:
    page = directory / RUNBOOKS / f"{alert.name}.md"
    if not page.is_file():
        yield "is missing"
        return
    text = page.read_text(encoding="utf-8")
    if not text.startswith(f"# {alert.name}\n"):
        yield f"must begin with # {alert.name}"
    headings = tuple(re.findall(r"^## (.+)$", text, re.MULTILINE))
    if headings != HEADINGS:
        yield f"its headings must be {', '.join(HEADINGS)}"
    elif len(commands_in(section(text, HEADINGS[2]))) != FIRST_COMMANDS:
        yield f"must name {FIRST_COMMANDS} first commands in a block of sh"


def _of_panel(panel: Panel, known: Mapping[str, expressions.Labels], rules: MonitoringRules) -> Iterator[str]:
    for query in panel.queries:
        try:
            labels = expressions.labels_of(query.expression, known)
        except expressions.WrongExpression as error:
            yield str(error)
            continue
        if missing := set(_LEGEND_LABEL.findall(query.legend)) - labels:
            yield f"its legend names labels that it has not: {', '.join(sorted(missing))}"
        yield from _undocumented(query.expression)
    alerts = {alert.name: alert for alert in rules.alerts}
    shown = _series_of(panel, rules)
    for name in panel.alerts:
        if name not in alerts:
            yield f"explains {name}, which is no alert"
        elif not shown & _resolved(alerts[name].expression, rules):
            yield f"explains {name}, and shows nothing that it asks for"


def _left_over(rules: MonitoringRules, directory: Path) -> list[CheckFinding]:
    wanted = {INDEX, *(f"{alert.name}.md" for alert in rules.alerts)}
    pages = sorted(path.name for path in (directory / RUNBOOKS).glob("*.md"))
    return [CheckFinding(f"{RUNBOOKS}/{name}", "belongs to no alert") for name in pages if name not in wanted]


def _series_of(panel: Panel, rules: MonitoringRules) -> set[str]:
    return {name for query in panel.queries for name in _resolved(query.expression, rules)}


def _resolved(expression: str, rules: MonitoringRules) -> set[str]:
    """Series that it asks for in the end: what is recorded stands for what it was recorded from."""
    try:
        names = expressions.asked(expression)
    except expressions.WrongExpression:
        return set()
    found: set[str] = set()
    for name in names:
        found |= _resolved(rules.recorded[name], rules) if name in rules.recorded else {name}
    return found
