"""`turntide ops metrics`: every metric, what it means and what to do about it; `deploy/metrics.md` is made of it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from jobs.cli import with_examples
from jobs.shared.output import OutputFormat, Printer
from models.errors import ConfigurationError
from models.metrics import PARTS
from streams.observe.telemetry import PREFIX

MetricsFormat = Literal["table", "json", "markdown"]
"""Forms of the list."""


@with_examples(
    "turntide ops metrics",
    "turntide ops metrics offset_lag_records",
    "turntide ops metrics --output markdown > deploy/metrics.md",
)
def metrics(
    name: Annotated[str | None, typer.Argument(help="One metric alone, with or without `turntide_`.")] = None,
    *,
    output: Annotated[MetricsFormat, typer.Option("--output", help="How it is printed.")] = "table",
) -> None:
    """List every metric: name, kind, unit, labels, meaning, and what to do when it is unusual."""
    rows = list(_rows(name))
    if not rows:
        raise ConfigurationError(f"no metric {name!r}: `turntide ops metrics` lists all metrics")
    if output == "markdown":
        sys.stdout.write(as_markdown())
        return
    Printer(OutputFormat(output)).rows("metrics", rows)


def as_markdown() -> str:
    """The whole reference, a table for each part of the catalogue."""
    lines = [Path(__file__).with_name("metrics_head.md").read_text("utf-8")]
    for part in PARTS:
        lines += [f"## {part}\n", "| metric | kind | unit | labels | means | what to do |", "|---|---|---|---|---|---|"]
        for row in _rows(None, part):
            labels = ", ".join(f"`{label}`" for label in row["labels"].split(", ") if label)
            cells = (f"`{row['metric']}`", row["kind"], row["unit"], labels, row["means"], row["what_to_do"])
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _rows(name: str | None, only: str | None = None) -> Iterator[dict[str, str]]:
    wanted = None if name is None else name.removeprefix(PREFIX)
    for part, metrics_of_part in PARTS.items():
        for metric in metrics_of_part:
            if wanted in (None, metric.name) and only in (None, part):
                yield {
                    "metric": PREFIX + metric.name,
                    "part": part,
                    "kind": metric.kind.value,
                    "unit": metric.unit,
                    "labels": ", ".join(metric.labels),
                    "means": metric.help,
                    "what_to_do": metric.what_to_do,
                }
