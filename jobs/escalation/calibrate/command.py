"""`turntide alerts calibrate`: thresholds by target, learnt where nobody is paged."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from jobs.cli import examples
from jobs.escalation.backtest.command import AppOption, DataOption, SinceOption, UntilOption
from jobs.escalation.backtest.report import between, cell
from jobs.shared.output import OutputFormat, OutputOption, Printer
from models.errors import ConfigurationError

if TYPE_CHECKING:
    from jobs.escalation.calibrate.proposing import CalibrationProposals, Proposal


def calibrate(
    *,
    target_fpr: Annotated[
        float | None, typer.Option(min=0, max=1, help="Maximum share of benign sessions that alert, 0-1.")
    ] = None,
    alerts_per_day: Annotated[
        float | None, typer.Option(min=0, help="Maximum number of sessions that alert a day, for each --app.")
    ] = None,
    data: DataOption = None,
    live: Annotated[
        float | None,
        typer.Option(min=1, help="Seconds to watch the live topic, instead of the archive.", show_default=False),
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    app: AppOption = None,
    policy: Annotated[
        Path | None, typer.Option(help="Policy to start from. Default: that of the settings.", show_default=False)
    ] = None,
    write: Annotated[
        Path | None, typer.Option(help="Write the policy with the next version into this new TOML file.")
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Propose the score from which alerts are raised, by a target for false alarms or for alerts per day.

    Shadow mode: the archive, labelled dialogues or the live topic go through the same fold as in the sessions role, and
    nothing is written to Kafka. The threshold follows from the highest score of each session. Then the same traffic is
    folded again with the proposal, and its result is printed as the expected one.

    With --app, each of these apps gets its own threshold; without, one threshold is for all apps that have none.
    """
    from jobs.escalation.backtest.judging import in_utc, require_folder, traffic_of, watched
    from jobs.escalation.calibrate.proposing import Shadow, Target, calibrated, require_new, write_new, written
    from streams.settings import load_settings
    from streams.wiring import policy_of, scorer_of, stream_embedder_of

    if (target_fpr is None) == (alerts_per_day is None):
        raise ConfigurationError("give one target: --target-fpr or --alerts-per-day")
    if sum([data is not None, live is not None, since is not None or until is not None]) > 1:
        raise ConfigurationError("--data, --live, and --since with --until exclude each other")
    if write is not None:
        require_folder(write)
        require_new(write)
    settings = load_settings()
    if policy is not None:
        settings = settings.model_copy(update={"policy_file": policy})
    present, embedder = policy_of(settings), stream_embedder_of(settings)
    scorer = scorer_of(settings, embedder)
    shadow = Shadow(
        opening=traffic_of(settings, data) if live is None else watched(settings, live),
        embedder=embedder,
        scorer=scorer,
        since=in_utc(since),
        until=in_utc(until),
        watched_for=None if live is None else timedelta(seconds=live),
    )
    found = calibrated(shadow.judged, present, Target(target_fpr, alerts_per_day), app or [])
    printed = Printer(output)
    _show(printed, found)
    if write is not None:
        said = f"From {found.policy} by `turntide alerts calibrate` over {found.traffic}: {found.target}."
        write_new(write, written(settings.policy_file, found.proposed, found.modes, said=said))
        printed.message(f"written: {write}; TURNTIDE_POLICY_FILE names the policy that roles use")


calibrate.epilog = examples(  # type: ignore[attr-defined]
    "turntide alerts calibrate --target-fpr 0.05 --data dialogues.jsonl",
    "turntide alerts calibrate --alerts-per-day 20 --since 2026-01-01 --app support --write policy-2.toml",
    "turntide alerts calibrate --alerts-per-day 20 --live 3600 --output json",
)


def _show(printed: Printer, found: CalibrationProposals) -> None:
    if printed.form is OutputFormat.JSON:
        printed.record(msgspec.to_builtins(found))
        return
    title = f"{found.traffic}, {found.target}: {found.policy} → {found.proposed}"
    printed.rows(title, [_row(each) for each in found.proposals])
    for each in found.proposals:
        for note in each.notes:
            printed.message(f"{each.app or 'all apps'}: {note}")


def _row(proposal: Proposal) -> dict[str, str]:
    expected = proposal.expected
    return {
        "app": proposal.app or "(all)",
        "learnt from": str(proposal.learnt_from),
        "present": f"{proposal.present:.4f}",
        "enter": f"{proposal.enter:.4f}",
        "leave": f"{proposal.leave:.4f}",
        "critical": f"{proposal.critical_enter:.4f}",
        "expected alerts per day": cell(expected.alerts_per_day),
        "expected false alarms": cell(expected.false_alarm_ratio) + between(expected.false_alarm_interval),
        "expected recall": cell(expected.recall) + between(expected.recall_interval),
    }
