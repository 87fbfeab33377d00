"""Runbooks: one page per alert, and the index of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs.operate.monitoring.rules import AlertRule

FOLDER = "runbooks"
INDEX = "README.md"
HEADINGS = ("Meaning", "Impact", "First three commands", "Next", "Escalate")
"""Of every runbook, in this order."""
FIRST_COMMANDS = 3

_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def path_of(alert: str, folder: str = f"deploy/{FOLDER}") -> str:
    """Where an alert's runbook is, as annotations and panels name it."""
    return f"{folder}/{alert}.md"


def commands_in(text: str) -> list[str]:
    """Every command of a runbook's shell blocks; lines that end in a backslash go on, comments are left out."""
    lines = [line for block in _BLOCK.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def section(text: str, heading: str) -> str:
    """What stands below one heading."""
    _, _, after = text.partition(f"\n## {heading}\n")
    return after.partition("\n## ")[0]


def meaning(text: str) -> str:
    """First sentence below `Meaning`, on one line."""
    said = " ".join(section(text, "Meaning").split())
    return said.partition(". ")[0].rstrip(".") + "."


def index(directory: Path, alerts: Sequence[AlertRule]) -> str:
    """The runbooks' README: pages first, then tickets, each with what it means."""
    return "\n".join(_index(directory, alerts)) + "\n"


def _index(directory: Path, alerts: Sequence[AlertRule]) -> Iterator[str]:
    yield "# Runbooks"
    yield ""
    yield "One page for each alert of `deploy/prometheus/rules`. Made by `turntide monitoring write`; do not edit."
    yield "`deploy/monitoring.md` says how all of it is used."
    yield ""
    yield "On Kubernetes `turntide …` runs where it may do what is asked, and `curl` on your machine beside a"
    yield "`kubectl port-forward` to the role:"
    yield ""
    yield "```sh"
    yield "kubectl scale deployment/turntide-ops --replicas=1"
    yield "kubectl exec -it deployment/turntide-ops -- turntide doctor"
    yield "```"
    for severity, title in (("page", "Somebody is woken up"), ("ticket", "In the morning")):
        yield from ("", f"## {title}", "", "| alert | fires after | meaning |", "|---|---|---|")
        for alert in alerts:
            if alert.labels.get("severity") == severity:
                page = directory / FOLDER / f"{alert.name}.md"
                said = meaning(page.read_text(encoding="utf-8")) if page.is_file() else "No runbook yet."
                yield f"| [{alert.name}]({alert.name}.md) | {alert.waits or 'at once'} | {said} |"
