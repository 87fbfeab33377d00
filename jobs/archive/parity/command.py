"""`turntide archive parity`: is what the stream kept of sessions what the archive's turns say?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from jobs.cli import examples
from jobs.shared.output import Output, OutputFormat
from jobs.shared.progress import progress_bar
from streams.settings import Settings, load_settings

if TYPE_CHECKING:
    from jobs.archive.parity.found import Parity
    from jobs.archive.parity.turns import Place
    from models.policy import Policy

_EXIT_DIFFERENT = 1


def parity(
    *,
    fold: Annotated[
        bool,
        typer.Option("--fold", help="Also fold every archived input again, and compare each event field by field."),
    ] = False,
    output: Annotated[OutputFormat, typer.Option("--output", help="How the result is printed.")] = OutputFormat.TABLE,
) -> None:
    """Recompute from the archived turns what profiles, windows, segments, episodes, topics and alerts claim.

    In bulk, and to the last bit: counts, ranges, times, sums of risks. With --fold every archived input goes through
    the stream's own fold once more, and every event of a session must be the one that was archived: slower by far, and
    it needs the policies and scorers of the data directory's `versions`.

    Exit code 1 with any difference. What cannot be told is counted, and why.
    """
    from models.events.topics import TURNS

    settings = load_settings()
    found = compared(settings, TURNS.full_name(settings.topic_prefix), fold=fold)
    _print(found, Output(output))
    if found.differences:
        raise typer.Exit(_EXIT_DIFFERENT)


parity.epilog = examples(  # type: ignore[attr-defined]
    "turntide archive parity",
    "turntide archive parity --fold",
    "turntide archive parity --output json",
)


def compared(settings: Settings, topic: str, *, fold: bool) -> Parity:
    """Compare the archive with itself.

    Args:
        settings: Which archive, and where the versions of rules are.
        topic: Full name of `turns.v1`.
        fold: Also by the fold.

    Raises:
        ConfigurationError: There is no archive, or rules of its time are not kept here.
        StoreUnavailable: It cannot be read.
    """
    from jobs.archive.parity.fold import fold_again
    from jobs.archive.parity.recount import partitions_of, recount
    from streams.archive.catalog import paths_of, reading

    with reading(paths_of(settings)) as con:
        places = partitions_of(con, topic)
        with progress_bar("parity: partitions") as progress:
            found = recount(con, places, _policies(settings, places), progress=progress)
        if fold:
            with progress_bar("parity: records folded") as progress:
                fold_again(con, settings, places, found, progress=progress)
    return found


def _policies(settings: Settings, places: list[Place]) -> Mapping[int, Policy]:
    """The rules by which each partition was folded last; those configured where no history says so."""
    from streams.state import policy_versions as versions
    from streams.wiring import policy_of

    stretches = {place.partition: versions.history(settings, place.partition) for place in places}
    return {
        partition: versions.kept_policy(settings, known[-1].version.policy) if known else policy_of(settings)
        for partition, known in stretches.items()
    }


def _print(found: Parity, printed: Output) -> None:
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
