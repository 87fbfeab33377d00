"""`turntide archive parity`: is what the stream kept of sessions what the archive's turns say?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from jobs.cli import examples
from jobs.shared.options import OutputOption
from jobs.shared.output import OutputFormat, Printer
from jobs.shared.progress import progress_bar
from streams.settings import load_settings

if TYPE_CHECKING:
    from jobs.archive.parity.found import Parity

_EXIT_DIFFERENT = 1


def parity(
    *,
    fold: Annotated[  # noqa: ARG001 - the comparison is always that of the fold; scripts of 0.2.0 name it
        bool,
        typer.Option("--fold", help="What is always done: fold the archived inputs again."),
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Fold every archived input of sessions again, and compare each event with the archived one, field by field.

    Profiles, risk points, windows, segments, episodes, topics, alerts and commands, to the last bit, through the
    stream's own fold. It needs the policies and scorers of the data directory's `versions`.

    Exit code 1 with any difference. What cannot be told is counted, and why.
    """
    from jobs.archive.parity.fold import fold_again
    from models.events.topics import TURNS
    from streams.archive.catalog import paths_of, reading

    settings = load_settings()
    topic = TURNS.full_name(settings.topic_prefix)
    with reading(paths_of(settings)) as con, progress_bar("parity: records folded") as progress:
        found = fold_again(con, settings, topic, progress=progress)
    _print(found, Printer(output))
    if found.differences:
        raise typer.Exit(_EXIT_DIFFERENT)


parity.epilog = examples(  # type: ignore[attr-defined]
    "turntide archive parity",
    "turntide archive parity --output json",
)


def _print(found: Parity, printed: Printer) -> None:
    if printed.form is OutputFormat.JSON:
        printed.record({"differences": found.differences, **msgspec.to_builtins(found)})
        return
    kinds = {claim: {k: n for k, n in found.counts.items() if k.rpartition(" ")[0] == claim} for claim in found.checked}
    printed.rows(
        "parity",
        [
            {"claim": claim, "checked": number, "different": sum(kinds[claim].values())}
            for claim, number in found.checked.items()
        ],
    )
    for example in found.examples:
        printed.message(f"DIFFERENT {example.claim} {example.kind}: {example.what}")
    for claim, number in found.not_checked.items():
        printed.message(f"not checked: {number} {claim}")
    if found.differences and found.erased_records:
        printed.message(
            f"{found.erased_records} records were erased since: what they did to the clock is not known, which alone "
            "may make windows and ends of sessions different"
        )
    if not found.differences:
        printed.message("everything that could be checked is exactly equal")
