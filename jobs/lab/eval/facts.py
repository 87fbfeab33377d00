"""`turntide eval facts`: what is read out of messages without a language model, against labels."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.lab.eval.ratios import cell, cells, group_rows
from jobs.shared.output import Output, OutputFormat

if TYPE_CHECKING:
    from jobs.lab.eval.facts_scoring import Report

FACTS_EXAMPLES = (
    "turntide eval facts",
    "turntide eval facts --split dev --show-misses",
    "turntide eval facts --data messages.jsonl --output json",
)


class SplitChoice(StrEnum):
    """What `--split` takes."""

    DEV = "dev"
    TEST = "test"
    ALL = "all"


def facts_command(
    *,
    data: Annotated[
        Path | None,
        typer.Option(help="Labelled messages, JSON lines. None: the set that Turntide brings.", show_default=False),
    ] = None,
    split: Annotated[
        SplitChoice, typer.Option(help="Rules may be mended by looking at dev; test is for measuring alone.")
    ] = SplitChoice.ALL,
    show_misses: Annotated[
        bool, typer.Option("--show-misses", help="Also print what was missed or found wrongly, with the messages.")
    ] = False,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Measure what is read out of users' messages without a language model: facts to keep, and facts to forget.

    A fact counts as found if its category, key and value agree with the label (the words of one value are the other's,
    or stand in it in one piece) and it is sure and important enough to be stored under the policy. --output csv prints
    the figures by category, or with --show-misses the misses. Needs no Kafka.
    """
    from jobs.lab.bench.machine import envelope
    from jobs.lab.eval.facts_messages import read_messages
    from jobs.lab.eval.facts_scoring import measure
    from models.language.facts.extraction import extract
    from streams.settings import load_settings
    from streams.wiring import policy_of

    printed = Output(output)
    messages = [message for message in read_messages(data) if split in (SplitChoice.ALL, message.split)]
    report = measure(messages, extract, policy_of(load_settings()).users.facts)
    if output is OutputFormat.JSON:
        fields = envelope(report)
        if not show_misses:
            del fields["misses"]
        printed.record(fields)
    elif output is OutputFormat.CSV:
        printed.rows("misses" if show_misses else "facts", _miss_rows(report) if show_misses else category_rows(report))
    else:
        show(printed, report, show_misses=show_misses)


def show(printed: Output, report: Report, *, show_misses: bool) -> None:
    """Print the tables and what they say."""
    printed.rows("By category", category_rows(report))
    printed.rows("By kind of message", group_rows(report.by_kind, "kind"))
    if show_misses:
        printed.rows("Missed or wrong", _miss_rows(report))
    clean = cell(report.negatives_clean)
    printed.message(
        f"{report.messages} messages; of the {report.negatives} with nothing to remember or to forget, "
        f"a share of {clean} was left alone"
    )


def category_rows(report: Report) -> Iterator[dict[str, str]]:
    """A row for each category, one for each split, one for retractions, one for all facts."""
    for category, figures in report.by_category.items():
        yield {"what": category} | cells(figures)
    for name, figures in report.by_split.items():
        yield {"what": f"split {name}"} | cells(figures)
    yield {"what": "retractions"} | cells(report.retractions)
    yield {"what": "all facts"} | cells(report)


def _miss_rows(report: Report) -> Iterator[dict[str, str]]:
    for miss in report.misses:
        yield {
            "id": miss.id,
            "kind": miss.kind,
            "message": miss.content,
            "missed": ", ".join(miss.missed),
            "wrong": ", ".join(miss.wrong),
        }
