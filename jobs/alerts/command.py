"""`turntide alerts`: list, explain, acknowledge and label alerts, and test the sinks."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar

import typer
from msgspec import to_builtins

from jobs.alerts import labels as alert_labels
from jobs.cli import examples, group
from jobs.shared.output import OutputFormat, OutputOption, Printer
from jobs.shared.role_api import CommandContext, columns, role_command
from jobs.shared.sending import send_to_turns
from jobs.shared.session_app import SessionAppOption
from models.errors import ConfigurationError, TurntideError
from models.events import (
    AlertAcknowledged,
    AlertChanged,
    AlertLabelled,
    AlertStatus,
    AlertTriaged,
    Escalation,
    EvidenceTurn,
    Harm,
    Mode,
    Position,
    Severity,
    Slope,
)
from models.events.ids import named_id
from models.events.saved_search import ShownAlerts
from models.events.topics import ALERTS
from models.policy import NotifyPolicy
from models.risk.alerts import refusal
from models.risk.telling import ToldAlert, contribution_words, counterfactual, policy_words, strongest
from streams.kafka.records import events_on, input_record
from streams.notify.forms import teller
from streams.notify.sinks import NO_SINK, sinks_of
from streams.settings import Settings, load_settings
from streams.wiring import written_policy

_EXIT_FAILED = 1
_TEST_HOLD = timedelta(minutes=5)
_TEST_NAME = "turntide-test"
_CONTRIBUTIONS = 5
"""Told to people; programs get all."""
_JUDGED = ("probability", "threshold", "model", "log_odds", "base_log_odds", "earlier_log_odds")


app = group("List, acknowledge and label alerts, and send a test alert through the configured sinks.")


@app.command(
    "list",
    epilog=examples(
        "turntide alerts list --status firing",
        "turntide alerts list --labels",
        "turntide alerts list --output json | jq .",
    ),
)
def list_alerts(
    *,
    status: Annotated[AlertStatus | None, typer.Option(help="Filter by state.")] = None,
    labels: Annotated[
        bool, typer.Option("--labels", help="Show each alert's latest label; reads all of turns.v1.")
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List alerts, sorted by their latest change; the latest is last."""
    settings = load_settings()
    found = asyncio.run(latest_alerts(settings))
    said = asyncio.run(alert_labels.latest_labels(settings)) if labels else {}
    shown = [alert for alert in found.values() if status in {None, alert.status}]
    shown.sort(key=lambda alert: alert.timestamp)
    printed = Printer(output)
    words = teller(written_policy(settings).notify, settings.http.public_url)
    if output is not OutputFormat.TABLE:
        columns = [alert_labels.described(said.get(alert.alert_id)) if labels else {} for alert in shown]
        printed.rows(
            "alerts", [described(alert, words(alert)) | label for alert, label in zip(shown, columns, strict=True)]
        )
        return
    for alert in shown:
        typer.echo(explained(alert, words(alert)))
        if alert.alert_id in said:
            typer.echo(alert_labels.explained(said[alert.alert_id]))
    firing = any(alert.status is AlertStatus.FIRING for alert in shown)
    advice = "`turntide alerts ack ID` acknowledges one" if firing else "`turntide alerts label ID` labels one"
    printed.message(f"{len(shown)} alerts{f'; {advice}' if shown else ''}")


@app.command(epilog=examples("turntide alerts ack 1b4e28ba-… --by anna --note 'looking at it'"))
def ack(
    alert_id: Annotated[str, typer.Argument(help="Id of the alert, as `list` shows it.")],
    *,
    by: Annotated[str, typer.Option(help="Name of the person who acknowledges.")] = "",
    note: Annotated[str, typer.Option(help="Note to store with it.")] = "",
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Acknowledge an alert: it is not sent again until it worsens or is resolved."""
    (said,) = asyncio.run(say(load_settings(), [alert_id], AlertAcknowledged, by=by, note=note))
    Printer(output).record({"alert_id": alert_id, "session_id": said.session_id, "by": by, "sent": True})


@app.command(
    epilog=examples(
        "turntide alerts label 1b4e28ba-… --true --by anna",
        "turntide alerts label 1b4e28ba-… 6fa459ea-… --false --reason 'security homework' --by anna",
        "turntide alerts label --session order-4711 --app shop --true --reason 'missed: refund fraud'",
    )
)
def label(
    alert_ids: Annotated[
        list[str] | None, typer.Argument(help="Ids of alerts, as `list` shows them. Excludes --session.")
    ] = None,
    *,
    escalating: Annotated[
        bool, typer.Option("--true/--false", help="Whether the session escalated, or it was a false alarm.")
    ],
    session: Annotated[
        str, typer.Option(help="Instead of alerts: id of an archived session that escalated without an alert.")
    ] = "",
    app_id: SessionAppOption = "",
    reason: Annotated[str, typer.Option(help="Reason for the label.")] = "",
    by: Annotated[str, typer.Option(help="Name of the person who labels.")] = "",
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Label alerts, open or resolved, as right or wrong; or label a session that escalated without an alert.

    Back-tests, calibration and the report use the labels. The latest label counts.
    """
    settings, said = load_settings(), {"reason": reason, "by": by}
    if bool(alert_ids) == bool(session):
        raise ConfigurationError("give either ids of alerts, or a session with --session")
    if session:
        made, partition = alert_labels.label_of_session(settings, session, app_id, escalating=escalating, **said)
        asyncio.run(send_to_turns(settings, [input_record(made, partition)]))
        labels = [made]
    else:
        labels = asyncio.run(say(settings, alert_ids or [], AlertLabelled, escalating=escalating, **said))
    rows = [{"alert_id": each.alert_id, "session_id": each.session_id, "escalating": escalating} for each in labels]
    Printer(output).rows("labelled", rows)


@role_command(app, "turntide alerts similar 1b4e28ba-…", "turntide alerts similar 1b4e28ba-… --limit 50 --output json")
def similar(
    context: CommandContext,
    alert_id: Annotated[str, typer.Argument(help="Id of an alert within live.window, as `list` shows it.")],
    *,
    limit: Annotated[int, typer.Option(min=1, max=50, help="Maximum number of sessions.")] = 10,
) -> None:
    """List sessions of the alert's app with turns similar to its evidence, from a running role's index."""
    found = context.ask("find_similar_sessions", alert_id=alert_id, limit=limit).body["sessions"]
    context.rows("similar sessions", found, columns("session_id", "app_id", "user_id", "turn", "similarity"))


@role_command(
    app,
    "turntide alerts searches --app shop",
    "turntide alerts searches --app shop --save 'urgent fraud' --severity critical --harm fraud",
    "turntide alerts searches --app shop --let-go 'urgent fraud'",
)
def searches(
    context: CommandContext,
    *,
    app_id: Annotated[str, typer.Option("--app", help="App of the searches. Default: all that the token reads.")] = "",
    save: Annotated[str, typer.Option(help="Title under which to save a search; needs --app.")] = "",
    let_go: Annotated[str, typer.Option(help="Title of the search to delete; needs --app.")] = "",
    show: Annotated[ShownAlerts, typer.Option(help="State of the alerts to show.")] = "open",
    severity: Annotated[Severity | None, typer.Option(help="Filter by severity. Default: all.")] = None,
    harm: Annotated[Harm | None, typer.Option(help="Filter by kind of harm. Default: all.")] = None,
) -> None:
    """List, save and delete searches of an app's alerts, shared by everyone who sees them on the live page."""
    if not save and not let_go:
        found = context.ask("list_searches", app_id=app_id or None).body["searches"]
        context.rows("saved searches", found, columns("app_id", "title", "show", "severity", "category"))
        return
    if not app_id or (save and let_go):
        raise ConfigurationError("use --app, and one of --save and --let-go")
    search = {"title": save or let_go, "show": show, "severity": severity, "category": harm}
    context.finish(context.ask("save_search", {"app_id": app_id, "search": search, "kept": bool(save)}), _titles)


def _titles(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"searches": ", ".join(each["title"] for each in body["searches"])} if "searches" in body else body


@app.command("test", epilog=examples("turntide alerts test", "turntide alerts test --sink slack --output json"))
def send_test(
    *,
    sink: Annotated[str, typer.Option(help="One sink: webhook, slack, pagerduty … Default: all that are set.")] = "",
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Send a clearly marked test alert through each configured sink; exit code 1 if a sink does not accept it."""
    results = asyncio.run(try_sinks(load_settings(), harmless_alert(datetime.now(UTC)), sink))
    Printer(output).rows("test alert", results)
    if not all(result["delivered"] for result in results):
        raise typer.Exit(_EXIT_FAILED)


async def latest_alerts(settings: Settings) -> dict[str, AlertChanged]:
    """Latest change of each alert, by alert id; not of those whose session was erased.

    Raises:
        ConfigurationError: The topic is missing.
    """
    # All changes of an alert stand in one partition, in their order.
    latest = {alert.alert_id: alert async for alert in events_on(settings, ALERTS, AlertChanged)}
    return {alert_id: alert for alert_id, alert in latest.items() if alert.cause != "erased"}


Said = TypeVar("Said", AlertAcknowledged, AlertTriaged, AlertLabelled)


async def say(settings: Settings, alert_ids: Sequence[str], kind: type[Said], **fields: Any) -> list[Said]:
    """Write what is said of alerts to `turns.v1`, where their sessions stand: it has its place in their order.

    Nothing is written if one of them does not take it. `fields` are those of the event that each gets.

    Raises:
        ConfigurationError: An id names no alert, one that does not take it, or one whose session was erased: what is
            said would name it again.
        DeliveryFailed: The broker did not confirm.
    """
    alerts, wanted = await latest_alerts(settings), list(dict.fromkeys(alert_ids))
    if unknown := [alert_id for alert_id in wanted if alert_id not in alerts]:
        raise ConfigurationError(
            f"no alert has the id {', '.join(unknown)}: nothing was written. `turntide alerts list` lists alerts"
        )
    now, each_of = datetime.now(UTC), [alerts[alert_id] for alert_id in wanted]
    said = [
        kind(session_id=of.session_id, app_id=of.app_id, timestamp=now, alert_id=of.alert_id, **fields)
        for of in each_of
    ]
    for each in said:
        if isinstance(each, AlertAcknowledged | AlertTriaged):
            other = alerts.get(getattr(each, "duplicate_of", None) or "")
            if (refused := refusal(alerts[each.alert_id], each, other)) is not None:
                raise ConfigurationError(f"{refused.why}. Nothing was written")
    # Of one that is open, an erasure is told on its own topic.
    over = [of for of in each_of if kind is AlertLabelled or of.status is AlertStatus.RESOLVED]
    if erased := await alert_labels.erased_since(settings, over):
        raise ConfigurationError(
            f"the session of alert {', '.join(sorted(erased))} was erased: nothing was written, since the record would "
            "store its name again"
        )
    await send_to_turns(settings, [input_record(each, alerts[each.alert_id].source.partition) for each in said])
    return said


def harmless_alert(now: datetime) -> AlertChanged:
    """An alert that says it is a test; it belongs to no conversation."""
    alert_id = named_id("test-alert", now.isoformat())
    return AlertChanged(
        id=alert_id,
        session_id=_TEST_NAME,
        user_id=_TEST_NAME,
        app_id=_TEST_NAME,
        timestamp=now,
        source=Position(_TEST_NAME, 0, 0),
        alert_id=alert_id,
        fingerprint=named_id("test-alert"),
        status=AlertStatus.FIRING,
        severity=Severity.WARNING,
        cause="raised",
        reason="TEST: sent by `turntide alerts test`, no conversation is affected",
        score=0.0,
        mode=Mode.CALM,
        signals=[],
        slope=Slope(0.0, 0.0, 0),
        evidence=[],
        turn=0,
        fired_at=now,
        notifications=1,
        policy_version="test",
    )


async def try_sinks(settings: Settings, alert: AlertChanged, only: str = "") -> list[dict[str, object]]:
    """Deliver to each sink, or to the one of this name, whatever the routes say, and tell how it went.

    Raises:
        ConfigurationError: No such sink is configured.
    """
    every = sinks_of(settings, NotifyPolicy(runbooks=written_policy(settings).notify.runbooks), hold=_TEST_HOLD)
    sinks = [sink for sink in every if only in ("", sink.name)]
    if not every:
        raise ConfigurationError(NO_SINK)
    if not sinks:
        raise ConfigurationError(f"--sink {only}: not configured; configured: {', '.join(sink.name for sink in every)}")
    results: list[dict[str, object]] = []
    for sink in sinks:
        said = ""
        try:
            await sink.deliver([alert])
        except TurntideError as error:
            said = str(error)
        finally:
            await sink.close()
        results.append({"sink": sink.name, "delivered": not said, "detail": said or f"id {alert.id}"})
    return results


def explained(alert: AlertChanged, words: ToldAlert) -> str:
    """Render an alert for on-call in a few lines: the sentence, what to do, then state, signals, turns and id."""
    judged = alert.escalation
    grounds = _shares(alert) if judged is None else _judgement(judged)
    evidence = ", ".join(_evidence(turn, judged=judged is not None) for turn in alert.evidence)
    score = f"score {alert.score:.2f}"
    if judged is not None:
        score = f"probability {judged.probability:.2f} (alert from {judged.threshold:.2f})"
    until = alert.snoozed_until
    rests = f"repeats {alert.duplicate_of}" if until is None else f"until {until:%Y-%m-%d %H:%M}Z"
    head = (
        f"{alert.status.value} {alert.severity.value}  session {alert.session_id}  app {alert.app_id}  "
        f"turn {alert.turn}  {score}  at {alert.timestamp:%Y-%m-%d %H:%M:%S}Z"
    )
    return "\n".join(
        (
            words.sentence,
            *([f"  next     {words.next_step}"] if words.next_step else []),
            *([f"  open     {words.link}"] if words.link else []),
            f"  is       {head}",
            *([f"  rests    {rests}"] if alert.is_silenced else []),
            f"  why      {alert.reason}",
            *grounds,
            f"  turns    {evidence or 'none'}",
            f"  by       {'' if judged is None else f'model {judged.model}, '}policy {policy_words(alert)}",
            f"  id       {alert.alert_id}",
        )
    )


def _shares(alert: AlertChanged) -> list[str]:
    shares = ", ".join(f"{signal.name} {signal.share:.0%}" for signal in alert.signals if signal.share > 0)
    return [f"  signals  {shares or 'none'}"]


def _judgement(escalation: Escalation) -> list[str]:
    shown = strongest(escalation.contributions, _CONTRIBUTIONS)
    said = [f"begins at {escalation.base_log_odds:+.1f}", *map(contribution_words, shown)]
    if left := len(escalation.contributions) - len(shown):
        rest = sum(each.log_odds for each in escalation.contributions) - sum(each.log_odds for each in shown)
        said.append(f"{left} more {rest:+.1f}")
    return [f"  signals  {'; '.join(said)}", f"  else     {counterfactual(escalation)}"]


def _evidence(turn: EvidenceTurn, *, judged: bool) -> str:
    return f"{turn.turn} ({turn.why}{f', {turn.log_odds:+.1f}' if judged else ''})"


def described(alert: AlertChanged, words: ToldAlert) -> dict[str, object]:
    """An alert's latest change in one row, with the whole judgement: what adds up stays exact, in log-odds."""
    judged = alert.escalation
    return {
        "alert_id": alert.alert_id,
        "status": alert.status.value,
        "severity": alert.severity.value,
        "session_id": alert.session_id,
        "app_id": alert.app_id,
        "turn": alert.turn,
        "score": round(alert.score, 3),
        "mode": alert.mode.value,
        "category": alert.category.value,
        "sentence": words.sentence,
        "next_step": words.next_step,
        "link": words.link,
        "reason": alert.reason,
        "assignee": alert.assignee,
        "snoozed_until": alert.snoozed_until and alert.snoozed_until.isoformat(),
        "duplicate_of": alert.duplicate_of,
        "signals": {signal.name: round(signal.share, 3) for signal in alert.signals},
        "evidence_turns": [turn.turn for turn in alert.evidence],
        "fired_at": alert.fired_at.isoformat(),
        "changed_at": alert.timestamp.isoformat(),
        "notifications": alert.notifications,
        "cause": alert.cause,
        "policy_version": alert.policy_version,
        "policy_digest": alert.policy_digest,
        **{name: judged and getattr(judged, name) for name in _JUDGED},
        "contributions": judged and to_builtins(judged.contributions),
        "turn_shares": judged and to_builtins(judged.turns),
        "counterfactual": judged and counterfactual(judged),
        "evidence": to_builtins(alert.evidence),
    }
