"""`turntide lab eval facts` and `eval extraction`: what rules read out of messages, against labels."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from jobs.lab.eval.scores import ScoreFigures, cell, print_judged
from jobs.shared.output import OutputFormat, Printer

_SET = "Labelled messages, JSON lines. None: the set that Turntide brings."
_SPLIT = "Rules may be mended by looking at dev; all others are for measuring alone."
ShowMisses = Annotated[
    bool, typer.Option("--show-misses", help="Also print what was missed or found wrongly, with the messages.")
]
Form = Annotated[OutputFormat, typer.Option("--output", help="How the figures are printed.")]
FACTS_EXAMPLES = (
    "turntide lab eval facts",
    "turntide lab eval facts --split dev --show-misses",
    "turntide lab eval facts --data messages.jsonl --output json",
)
EXTRACTION_EXAMPLES = (
    "turntide lab eval extraction",
    "turntide lab eval extraction --split dev --show-misses",
    "turntide lab eval extraction sentences.jsonl --output json",
)
FactsSplit = StrEnum("FactsSplit", ["DEV", "TEST", "ALL"])
ExtractionSplit = StrEnum("ExtractionSplit", ["DEV", "TEST", "RARE", "FOREIGN", "ALL"])


def facts_command(
    *,
    data: Annotated[Path | None, typer.Option(help=_SET, show_default=False)] = None,
    split: Annotated[FactsSplit, typer.Option(help=_SPLIT)] = FactsSplit.ALL,
    show_misses: ShowMisses = False,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure what is read out of users' messages without a language model: facts to keep, and facts to forget.

    A fact counts as found if its category, key and value agree with the label (the words of one value are the other's,
    or stand in it in one piece) and it is sure and important enough to be stored under the policy. --output csv prints
    the figures by category, or with --show-misses the misses. Needs no Kafka.
    """
    from jobs.lab.bench.machine import envelope
    from jobs.lab.eval.facts import measure, read_messages
    from models.language.facts.extraction import extract
    from streams.settings import load_settings
    from streams.wiring import policy_of

    messages = [message for message in read_messages(data) if split in (FactsSplit.ALL, message.split)]
    report = measure(messages, extract, policy_of(load_settings()).users.facts)
    by_category = {
        **report.by_category,
        **{f"split {name}": figures for name, figures in report.by_split.items()},
        "retractions": report.retractions,
        "all facts": ScoreFigures(report.precision, report.recall, report.f1, report.gold, report.found),
    }
    print_judged(
        Printer(output),
        envelope(report),
        {("By category", "what"): by_category, ("By kind of message", "kind"): report.by_kind},
        show_misses=show_misses,
        said=f"{report.messages} messages; of the {report.negatives} with nothing to remember or to forget, "
        f"a share of {cell(report.negatives_clean)} was left alone",
    )


def extraction_command(
    file: Annotated[Path | None, typer.Argument(help=_SET, show_default=False)] = None,
    *,
    split: Annotated[ExtractionSplit, typer.Option(help=_SPLIT)] = ExtractionSplit.ALL,
    show_misses: ShowMisses = False,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Measure which decisions, goals, constraints … are read out of project talk, beside the source's bare patterns.

    A statement counts as found if its type agrees with the label and it is sure enough to become a memory under the
    policy. Subjects are counted apart. --output csv prints the figures by split and type, or with --show-misses the
    misses. Needs no Kafka.
    """
    from jobs.lab.bench.machine import envelope
    from jobs.lab.eval.extraction import measure, read_sentences
    from models.errors import ConfigurationError
    from models.language.statements.extraction import extract
    from streams.settings import load_settings
    from streams.wiring import policy_of

    sentences = [each for each in read_sentences(file) if split in (ExtractionSplit.ALL, each.split)]
    if not sentences:
        raise ConfigurationError(f"no labelled sentence of split {split.value}: give a file that has some")
    report = measure(
        sentences,
        lambda each: extract(each.text, each.role, context=each.context),
        policy_of(load_settings()).projects.long_term.promote_from,
    )
    by_type = {
        **{f"split {name}": figures for name, figures in report.by_split.items()},
        **report.by_type,
        "subjects": report.subjects,
        "bare source patterns": report.seed_patterns,
        "source patterns, held out": report.seed_patterns_held_out,
        "held out": report.held_out,
        "all": report.all,
    }
    print_judged(
        Printer(output),
        envelope(report),
        {("By split and type", "what"): by_type, ("By difficulty", "difficulty"): report.by_difficulty},
        show_misses=show_misses,
        said=f"{report.messages} messages, {report.us_per_message:.0f} µs each; "
        f"of the {report.negatives} that state nothing, a share of {cell(report.negatives_clean)} was left alone; "
        f"F1 is {cell(report.f1_ratio)} times that of the source's bare patterns",
    )
