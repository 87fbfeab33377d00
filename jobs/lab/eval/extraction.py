"""`turntide eval extraction`: which typed statements are read out of project talk by rules, against labels."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.lab.eval.ratios import cell, cells, group_rows
from jobs.shared.output import Output, OutputFormat

if TYPE_CHECKING:
    from jobs.lab.eval.extraction_scoring import Report

EXTRACTION_EXAMPLES = (
    "turntide eval extraction",
    "turntide eval extraction --split dev --show-misses",
    "turntide eval extraction sentences.jsonl --output json",
)


class SplitChoice(StrEnum):
    """What `--split` takes."""

    DEV = "dev"
    TEST = "test"
    RARE = "rare"
    FOREIGN = "foreign"
    ALL = "all"


def extraction_command(
    file: Annotated[
        Path | None,
        typer.Argument(help="Labelled sentences, JSON lines. None: the set that Turntide brings.", show_default=False),
    ] = None,
    *,
    split: Annotated[
        SplitChoice, typer.Option(help="Rules may be mended by looking at dev; the others are for measuring alone.")
    ] = SplitChoice.ALL,
    show_misses: Annotated[
        bool, typer.Option("--show-misses", help="Also print what was missed or found wrongly, with the messages.")
    ] = False,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")] = OutputFormat.TABLE,
) -> None:
    """Measure which decisions, goals, constraints … are read out of project talk, beside the source's bare patterns.

    A statement counts as found if its type agrees with the label and it is sure enough to become a memory under the
    policy. Subjects are counted apart. --output csv prints the figures by split and type, or with --show-misses the
    misses. Needs no Kafka.
    """
    from jobs.lab.bench.machine import envelope
    from jobs.lab.eval.extraction_scoring import measure
    from jobs.lab.eval.extraction_sentences import read_sentences
    from models.errors import ConfigurationError
    from models.language.statements.extraction import extract
    from streams.settings import load_settings
    from streams.wiring import policy_of

    printed = Output(output)
    sentences = [each for each in read_sentences(file) if split in (SplitChoice.ALL, each.split)]
    if not sentences:
        raise ConfigurationError(f"no labelled sentence of split {split.value}: give a file that has some")
    report = measure(
        sentences,
        lambda each: extract(each.text, each.role, context=each.context),
        policy_of(load_settings()).projects.long_term.promote_from,
    )
    if output is OutputFormat.JSON:
        fields = envelope(report)
        if not show_misses:
            del fields["misses"]
        printed.record(fields)
    elif output is OutputFormat.CSV:
        title, rows = ("misses", _miss_rows(report)) if show_misses else ("extraction", figure_rows(report))
        printed.rows(title, rows)
    else:
        show(printed, report, show_misses=show_misses)


def show(printed: Output, report: Report, *, show_misses: bool) -> None:
    """Print the tables and what they say."""
    printed.rows("By split and type", figure_rows(report))
    printed.rows("By difficulty", group_rows(report.by_difficulty, "difficulty"))
    if show_misses:
        printed.rows("Missed or wrong", _miss_rows(report))
    printed.message(
        f"{report.messages} messages, {report.us_per_message:.0f} µs each; "
        f"of the {report.negatives} that state nothing, a share of {cell(report.negatives_clean)} was left alone; "
        f"F1 is {cell(report.f1_ratio)} times that of the source's bare patterns"
    )


def figure_rows(report: Report) -> Iterator[dict[str, str]]:
    """A row for each split and type, for subjects, and for the source's bare patterns."""
    for name, figures in report.by_split.items():
        yield {"what": f"split {name}"} | cells(figures)
    for type_, figures in report.by_type.items():
        yield {"what": type_} | cells(figures)
    yield {"what": "subjects"} | cells(report.subjects)
    yield {"what": "bare source patterns"} | cells(report.seed_patterns)
    yield {"what": "source patterns, held out"} | cells(report.seed_patterns_held_out)
    yield {"what": "held out"} | cells(report.held_out)
    yield {"what": "all"} | cells(report.all)


def _miss_rows(report: Report) -> Iterator[dict[str, str]]:
    for miss in report.misses:
        yield {
            "id": miss.id,
            "difficulty": miss.difficulty,
            "message": miss.text,
            "missed": ", ".join(miss.missed),
            "wrong": ", ".join(miss.wrong),
        }
