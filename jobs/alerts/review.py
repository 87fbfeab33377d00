"""`turntide alerts review`: whose label would teach most, and labels as lines that training reads.

Two readings of a session that are far apart, and a probability at the threshold, are where the model knows least
(sampling by disagreement and by uncertainty, Settles 2009); where both agree that all is calm a label says little.

`turntide alerts triage`: who looks after alerts, until when they rest, which other they repeat, and notes.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from msgspec import Struct

from jobs.alerts.command import say
from jobs.cli import with_examples
from jobs.escalation.backtest.command import AppOption, SinceOption
from jobs.shared.output import OutputFormat, OutputOption, Printer
from models.errors import ConfigurationError, StoreUnavailable
from models.events import AlertTriaged
from models.events.ids import named_id
from models.policy import ModePolicy
from streams.settings import load_settings

if TYPE_CHECKING:
    import duckdb

    from jobs.shared.dialogues import LabelledDialogue

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_NAME = 256
_DIGITS = 4
"""Of a gap: what is nearer together counts as equal."""
_SHOWN = ("why", "app_id", "session_id", "turn", "alert_id")
_DOUBTFUL = """
WITH labelled AS (SELECT DISTINCT app_id, session_id FROM controls WHERE type = 'alert_labelled'),
raised AS (
  SELECT app_id, session_id, alert_id, turn, category, score, kafka_offset
  FROM alert_changes
  QUALIFY row_number() OVER (PARTITION BY app_id, session_id, alert_id ORDER BY kafka_partition, kafka_offset) = 1
),
judged AS (
  SELECT session_id, alert_id, probability AS judge
  FROM controls
  WHERE type = 'turns_judged' AND probability IS NOT NULL
  QUALIFY row_number() OVER (PARTITION BY session_id, alert_id ORDER BY kafka_offset DESC) = 1
),
highest AS (
  SELECT app_id, session_id, max(score) AS score, arg_max(turn, score ORDER BY turn) AS turn
  FROM risk_points GROUP BY app_id, session_id
),
begun AS (SELECT app_id, session_id, min(timestamp) AS begun_at FROM turns GROUP BY app_id, session_id)
SELECT h.app_id, h.session_id, coalesce(r.alert_id, '') AS alert_id, coalesce(r.turn, h.turn) AS turn,
  coalesce(r.category, '') AS category, coalesce(r.score, h.score) AS score, j.judge
FROM highest h
JOIN begun b USING (app_id, session_id)
LEFT JOIN raised r USING (app_id, session_id)
LEFT JOIN judged j ON j.session_id = r.session_id AND j.alert_id = r.alert_id
WHERE NOT EXISTS (FROM labelled l WHERE l.session_id = h.session_id AND l.app_id IN ('', h.app_id))
  AND b.begun_at >= ?
ORDER BY h.app_id, h.session_id, alert_id
"""
_LABELLED = """
WITH said AS (
  SELECT app_id, session_id, escalating FROM controls WHERE type = 'alert_labelled'
  QUALIFY row_number() OVER (PARTITION BY app_id, session_id, alert_id ORDER BY kafka_offset DESC) = 1
),
labelled AS (SELECT app_id, session_id, bool_or(escalating) AS escalating FROM said GROUP BY app_id, session_id)
SELECT t.app_id, t.session_id, l.escalating, t.turn, t.role, t.content
FROM labelled l JOIN turns t ON t.session_id = l.session_id AND l.app_id IN ('', t.app_id)
QUALIFY min(t.timestamp) OVER (PARTITION BY t.app_id, t.session_id) >= ?
ORDER BY t.app_id, t.session_id, t.turn
"""


class Doubtful(Struct, frozen=True, kw_only=True):
    """A session that nobody has labelled, with the alert that it raised, if any.

    Attributes:
        alert_id: Empty where none was raised.
        turn: At which the alert was raised, or the score was highest.
        category: Of the alert.
        score: When the alert was raised, or the highest: with a model the probability.
        threshold: Score from which the app's sessions alert.
        judge: What the slower judge made of the alert's turns, 0-1; None: none was asked, or none answered.
    """

    app_id: str
    session_id: str
    alert_id: str
    turn: int
    category: str
    score: float
    threshold: float
    judge: float | None

    @property
    def gap(self) -> float:
        """How far the two readings are apart; without a judge, how far the score is from the threshold."""
        return round(abs(self.score - (self.threshold if self.judge is None else self.judge)), _DIGITS)

    @property
    def why(self) -> str:
        """Why it is asked of."""
        if self.judge is not None:
            return f"{self.gap:.2f} apart: alert {self.score:.2f}, judge {self.judge:.2f}"
        return f"{self.gap:.2f} {'above' if self.score >= self.threshold else 'below'} the threshold"


def queue(found: Sequence[Doubtful]) -> list[Doubtful]:
    """In the order in which they are to be read: by turns the widest disagreement and the one nearest the threshold.

    The same sessions give the same order: equal ones go by app, session and alert.
    """

    def in_order(each: Doubtful) -> tuple[float, str, str, str]:
        return (each.gap if each.judge is None else -each.gap, each.app_id, each.session_id, each.alert_id)

    apart = sorted((each for each in found if each.judge is not None), key=in_order)
    near = sorted((each for each in found if each.judge is None), key=in_order)
    return [each for each in chain.from_iterable(zip_longest(apart, near)) if each is not None]


def doubtful(
    lake: duckdb.DuckDBPyConnection, modes: ModePolicy, *, apps: Sequence[str], since: datetime
) -> list[Doubtful]:
    """Scored sessions that nobody has labelled, of these apps or of all, in the order of `queue`."""
    from streams.archive.inputs import rows_of

    return queue(
        [
            Doubtful(**row, threshold=modes.thresholds(row["app_id"])[1].enter)
            for row in rows_of(lake, _DOUBTFUL, [since])
            if not apps or row["app_id"] in apps
        ]
    )


def training_lines(
    lake: duckdb.DuckDBPyConnection, *, apps: Sequence[str], since: datetime
) -> Iterator[LabelledDialogue]:
    """Labelled sessions as `turntide lab train scorer` and `alerts backtest --data` read them.

    One is escalating if any of its labels says so. Its source is its app, with a side of its own for each label, so
    that training takes an app's manner for neither. Turns without words, and sessions without a user's, are left out.
    """
    from jobs.shared.dialogues import DialogueTurn, LabelledDialogue
    from models.events import Role
    from streams.archive.inputs import rows_of

    sessions: defaultdict[tuple[str, str, bool], list[Any]] = defaultdict(list)
    for row in rows_of(lake, _LABELLED, [since]):
        if row["content"] and (not apps or row["app_id"] in apps):
            said = DialogueTurn(Role(row["role"]), row["content"], row["turn"])
            sessions[row["app_id"], row["session_id"], row["escalating"]].append(said)
    for (app, session, escalating), turns in sessions.items():
        if any(said.role is Role.USER for said in turns):
            name, side = _name(app, session), "attack" if escalating else "benign"
            yield LabelledDialogue(name, f"{app}_{side}", "escalating" if escalating else "benign", turns)


def _name(app: str, session: str) -> str:
    named = f"{app}/{session}"
    return named if len(named) <= _LONGEST_NAME else named_id(app, session)


@with_examples(
    "turntide alerts review",
    "turntide alerts review --app shop --since 2026-03-01 --limit 50 --output json",
    "turntide alerts review --export mine.jsonl",
    "turntide lab train scorer --data mine.jsonl --to mine.scorer --any-licence",
)
def review(
    *,
    app: AppOption = None,
    since: SinceOption = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of sessions and alerts.")] = 20,
    export: Annotated[
        Path | None,
        typer.Option(help="Write the labelled sessions instead, with their text: JSON lines for training."),
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List the sessions and alerts that most need a label: judges disagree, or the score is near the threshold.

    The list alternates between the alert with the largest disagreement of the slower judge and the session, with or
    without an alert, whose score is nearest the threshold. Labelled ones are left out. `turntide alerts label` labels
    one. The list shows no text; the live page does.

    --export writes the labelled sessions as lines for `turntide lab train scorer --data` and `turntide alerts backtest
    --data`. The file holds text of users, and an erasure does not reach it.
    """
    from jobs.escalation.backtest.judging import in_utc, require_folder
    from streams.archive.catalog import paths_of, reading
    from streams.notify.forms import link_to
    from streams.wiring import written_policy

    settings, printed = load_settings(), Printer(output)
    asked: dict[str, Any] = {"apps": app or (), "since": in_utc(since) or _BEGINNING}
    if export is not None:
        require_folder(export)
        with reading(paths_of(settings)) as lake:
            lines = list(training_lines(lake, **asked))
        _write(export, lines)
        escalating = sum(each.escalating for each in lines)
        printed.record({"file": str(export), "escalating": escalating, "benign": len(lines) - escalating})
        return
    with reading(paths_of(settings)) as lake:
        found = doubtful(lake, written_policy(settings).modes, **asked)
    base = settings.http.public_url
    rows = [
        {"why": each.why}
        | msgspec.structs.asdict(each)
        | {"link": link_to(each.app_id, each.session_id, each.turn, base)}
        for each in found[:limit]
    ]
    if output is OutputFormat.TABLE:
        rows = [{name: row[name] for name in (*_SHOWN, *(["link"] if base else []))} for row in rows]
    printed.rows("to review", rows)
    printed.message(
        f"{len(rows)} of {len(found)} without a label; `turntide alerts label ALERT --true` or `--false` labels one, "
        "and `turntide alerts label --session ID --app APP` a session without an alert"
    )


def _write(file: Path, lines: Sequence[LabelledDialogue]) -> None:
    from jobs.shared.pictures import write_whole

    try:
        write_whole(file, b"".join(msgspec.json.encode(each) + b"\n" for each in lines))
    except OSError as error:
        raise StoreUnavailable(f"cannot write {file}: {error.strerror}") from None


@with_examples(
    "turntide alerts triage 1b4e28ba-… --assign anna --note 'asked the fraud desk' --by bob",
    "turntide alerts triage 1b4e28ba-… 6fa459ea-… --snooze 90 --by bob",
    "turntide alerts triage 6fa459ea-… --repeats 1b4e28ba-… --by bob",
)
def triage(
    alert_ids: Annotated[list[str], typer.Argument(help="Ids of alerts, as `list` shows them.")],
    *,
    assign: Annotated[str | None, typer.Option(help="Assignee; '' for nobody.")] = None,
    snooze: Annotated[float | None, typer.Option(min=0, help="Minutes without repeats; 0: end a snooze now.")] = None,
    repeats: Annotated[str | None, typer.Option(help="Alert of the same app that they duplicate; '' for none.")] = None,
    note: Annotated[str, typer.Option(help="Note to store; also for resolved alerts.")] = "",
    by: Annotated[str, typer.Option(help="Name of the person who triages.")] = "",
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Assign alerts, snooze them, mark them as duplicates of another one, or add a note.

    A snoozed alert is sent again when the snooze ends or the alert worsens, a duplicate when it becomes critical.
    """
    if not note and {assign, snooze, repeats} == {None}:
        raise ConfigurationError("the command changes nothing: use --assign, --snooze, --repeats or --note")
    until = None if snooze is None else datetime.now(UTC) + timedelta(minutes=snooze)
    news = {"assignee": assign, "snoozed_until": until, "duplicate_of": repeats, "note": note, "by": by}
    said = asyncio.run(say(load_settings(), alert_ids, AlertTriaged, **news))
    Printer(output).rows("triaged", [{"alert_id": each.alert_id, "session_id": each.session_id} for each in said])
