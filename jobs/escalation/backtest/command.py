"""`turntide alerts backtest`: what another policy would have done, before anybody is paged by it."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from jobs.cli import examples
from jobs.shared.output import OutputFormat, OutputOption, Printer
from models.errors import ConfigurationError

_TIMES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]

DataOption = Annotated[
    Path | None, typer.Option(help="Labelled dialogues, JSON Lines. Default: the archive.", show_default=False)
]
SinceOption = Annotated[datetime | None, typer.Option(formats=_TIMES, help="Earliest start of sessions, UTC.")]
UntilOption = Annotated[datetime | None, typer.Option(formats=_TIMES, help="Latest start of sessions, UTC; excluded.")]
AppOption = Annotated[
    list[str] | None, typer.Option(help="Filter by app; with a file, by source. May be repeated.", show_default=False)
]


def backtest(
    *,
    policy: Annotated[
        list[Path] | None,
        typer.Option(help="Policy file; a second is compared with it. Default: the settings' one.", show_default=False),
    ] = None,
    scorer: Annotated[
        list[str] | None,
        typer.Option(
            help="Scorer: `rules` (fixed formulas), `shipped`, or a file of `turntide lab train scorer`; a second is "
            "compared with it. `left-out` (needs --data) trains scorers that each leave out the judged dialogue's "
            "family. Default: that of the settings.",
            show_default=False,
        ),
    ] = None,
    data: DataOption = None,
    texts: Annotated[
        list[Path] | None,
        typer.Option(help="Further texts for `left-out`, in the format of `lab train scorer`.", show_default=False),
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    app: AppOption = None,
    page: Annotated[Path | None, typer.Option(help="Write the comparison as one HTML file that opens offline.")] = None,
    sessions: Annotated[
        bool, typer.Option(help="Name the sessions that alert or differ. Without: only figures, safe to pass on.")
    ] = True,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Judge the archive or labelled dialogues with one policy and scorer, or compare two.

    Every turn goes through the same fold as in the sessions role; nothing is written to Kafka. Labels of the archive
    are those of `turntide alerts label`. Each line of a file is a dialogue: session_id, source, label (escalating or
    benign), turns (turn, role, content).

    The fold always reads the whole archive, also with --since: the end of a session depends on what came before it.
    """
    from jobs.escalation.backtest.contenders import LEFT_OUT, contenders_of
    from jobs.escalation.backtest.judging import in_utc, judge, judged_left_out, require_folder, selected, traffic_of
    from jobs.escalation.backtest.report import backtest_of, show, without_sessions
    from jobs.replay.command import folding
    from streams.inference.trained_scorer import reader_file
    from streams.settings import load_settings
    from streams.wiring import stream_embedder_of

    if data is not None and (since or until):
        raise ConfigurationError("--since and --until need the archive: dialogues of a file have no times")
    if data is None and LEFT_OUT in (scorer or ()):
        raise ConfigurationError(f"--scorer {LEFT_OUT} trains on labelled dialogues: give them with --data")
    if page is not None:
        from jobs.escalation.backtest.page import render

        require_folder(page)
    settings = load_settings()
    embedder = stream_embedder_of(settings)
    contenders = contenders_of(settings, policy or [], scorer or [], embedder)
    folded = [each for each in contenders if not each.left_out]
    with traffic_of(settings, data)() as traffic, folding(traffic.count) as progress:
        judgings = judge(traffic, folded, embedder, progress) if folded else []
    rest = iter(judgings)
    reader = reader_file(settings.scorer.reader)
    found = [
        judged_left_out(data, texts or (), each.policy, embedder, reader)
        if each.left_out and data
        else next(rest).judged()
        for each in contenders
    ]
    judged = [selected(each, apps=app or (), since=in_utc(since), until=in_utc(until)) for each in found]
    if not judged[0]:
        raise ConfigurationError(f"no session of {traffic.name} is selected: check --app, --since and --until")
    dead_letters = max((judging.dead_letters for judging in judgings), default=0)
    report = backtest_of(traffic.name, contenders, judged, timed=traffic.timed, dead_letters=dead_letters)
    if not sessions:
        report = without_sessions(report)
    if page is not None:
        page.write_text(render(report), "utf-8")
        Printer(output).message(f"written: {page}")
    show(Printer(output), report)


backtest.epilog = examples(  # type: ignore[attr-defined]
    "turntide alerts backtest",
    "turntide alerts backtest --policy policy-1.toml --policy policy-2.toml --since 2026-01-01 --page backtest.html",
    "turntide alerts backtest --data dialogues.jsonl --scorer rules --scorer left-out --page backtest.html",
    "turntide alerts backtest --scorer shipped --scorer mine.scorer --since 2026-01-01",
    "turntide alerts backtest --data dialogues.jsonl --policy policy-2.toml --app support --output json",
)
