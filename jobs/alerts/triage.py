"""`turntide alerts triage`: who looks after alerts, until when they rest, which other they repeat, and notes."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from jobs.alerts.command import say
from jobs.cli import with_examples
from jobs.shared.options import OutputOption
from jobs.shared.output import OutputFormat, Printer
from models.errors import ConfigurationError
from models.events import AlertTriaged
from streams.settings import load_settings


@with_examples(
    "turntide alerts triage 1b4e28ba-… --assign anna --note 'asked the fraud desk' --by bob",
    "turntide alerts triage 1b4e28ba-… 6fa459ea-… --snooze 90 --by bob",
    "turntide alerts triage 6fa459ea-… --repeats 1b4e28ba-… --by bob",
)
def triage(
    alert_ids: Annotated[list[str], typer.Argument(help="Ids of alerts, as `list` shows them.")],
    *,
    assign: Annotated[str | None, typer.Option(help="Who looks after them; '' for nobody.")] = None,
    snooze: Annotated[
        float | None, typer.Option(min=0, help="Minutes for which they are not told again; 0: they are told now.")
    ] = None,
    repeats: Annotated[str | None, typer.Option(help="Alert of their app that they repeat; '' for none.")] = None,
    note: Annotated[str, typer.Option(help="Remark; also of alerts that are resolved.")] = "",
    by: Annotated[str, typer.Option(help="Who says so.")] = "",
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Assign alerts, snooze them, mark them as repeating another one, or add a note.

    A snoozed alert is told again when its time is over or it grows worse, a repeating one when it becomes critical.
    """
    if not note and {assign, snooze, repeats} == {None}:
        raise ConfigurationError("nothing is said of the alerts: give --assign, --snooze, --repeats or --note")
    until = None if snooze is None else datetime.now(UTC) + timedelta(minutes=snooze)
    news = {"assignee": assign, "snoozed_until": until, "duplicate_of": repeats, "note": note, "by": by}
    said = asyncio.run(say(load_settings(), alert_ids, AlertTriaged, **news))
    Printer(output).rows("triaged", [{"alert_id": each.alert_id, "session_id": each.session_id} for each in said])
