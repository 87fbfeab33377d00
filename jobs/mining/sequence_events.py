"""Events of a session that patterns are made of, twice: as Ibis expressions for mining, as SQL for the evidence.

* `mode …`: the mode becomes this one (`risk_points`); sessions begin calm.
* `signal …`: a signal of the profile reaches `signal_level` for the first time (`profile_history`). The level is left
  to the mode.
* `first …`: the first hypothetical question, rephrased probe or instruction about the rules that the profile counted.
* `topic started`, `topic returned`: another topic after the first one, or one that had been left (`topic_changes`).

The archive has no event for a refusal: what users do about one (`first probing`) stands for it.
"""

# ruff: noqa: S608 - names are constants of this module, days are dates, texts are quoted

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import ibis

from jobs.mining.comparing import begun, quoted
from jobs.mining.job import Period
from jobs.mining.tables import Tables
from models.archive_policy import SequenceMining
from models.events import Mode

if TYPE_CHECKING:
    import ibis.expr.types as ir

MODE, SIGNAL, FIRST, TOPIC = "mode", "signal", "first", "topic"
_LEVEL = "level"
_BEHAVIOURS = {
    "hypothetical question": "hypothetical_count",
    "probing": "probing_attempts",
    "instruction about rules": "meta_instruction_count",
}
_BEGIN = quoted(Mode.CALM)
_TOPICS = ("started", "returned")


def events(tables: Tables, policy: SequenceMining) -> ir.Table:
    """All events: `day, session_id, turn, event`."""
    profiles = tables["profile_history"]
    behaviours = [_first(profiles, name, column) for name, column in _BEHAVIOURS.items()]
    return ibis.union(_modes(tables), _signals(profiles, policy), *behaviours, _topics(tables), distinct=False)


def _modes(tables: Tables) -> ir.Table:
    points = tables["risk_points"].select("day", "session_id", "turn", "mode")
    before = points["mode"].lag().over(ibis.window(group_by="session_id", order_by="turn"))
    points = points.mutate(before=before.fill_null(Mode.CALM.value))
    changed = points.filter(points.before != points["mode"])
    return changed.select("day", "session_id", "turn", event=ibis.literal(f"{MODE} ").concat(changed["mode"]))


def _signals(profiles: ir.Table, policy: SequenceMining) -> ir.Table:
    each = profiles.select("day", "session_id", turn=profiles.last_turn, signal=profiles.signals.unnest())
    each = each.mutate(name=each.signal["name"], value=each.signal["value"])
    strong = each.filter(each.value >= policy.signal_level, each.name != _LEVEL)
    first = strong.group_by("day", "session_id", "name").agg(turn=strong.turn.min())
    return first.select("day", "session_id", "turn", event=ibis.literal(f"{SIGNAL} ").concat(first.name))


def _first(profiles: ir.Table, name: str, column: str) -> ir.Table:
    counted = profiles.filter(profiles[column] > 0)
    first = counted.group_by("day", "session_id").agg(turn=counted.last_turn.min())
    return first.select("day", "session_id", "turn", event=ibis.literal(f"{FIRST} {name}"))


def _topics(tables: Tables) -> ir.Table:
    changes = tables["topic_changes"]
    changes = changes.mutate(begun=changes.turn.min().over(ibis.window(group_by="session_id")))
    told = changes.filter(changes.cause.isin(_TOPICS), changes.turn > changes.begun)
    return told.select("day", "session_id", "turn", event=ibis.literal(f"{TOPIC} ").concat(told.cause))


def _source(event: str, policy: SequenceMining) -> str:
    """SQL of `session_id, user_id, turn` of an event."""
    kind, name = event.split(" ", 1)
    if kind == MODE:
        return (
            "SELECT session_id, user_id, turn FROM (SELECT session_id, user_id, turn, mode, "
            f"lag(mode, 1, {_BEGIN}) OVER (PARTITION BY session_id ORDER BY turn) AS before FROM risk_points) "
            f"WHERE mode = {quoted(name)} AND before <> mode"
        )
    if kind == SIGNAL:
        return (
            "SELECT session_id, user_id, min(last_turn) AS turn FROM (SELECT session_id, user_id, last_turn, "
            f"unnest(signals) AS signal FROM profile_history) WHERE signal.name = {quoted(name)} "
            f"AND signal.value >= {policy.signal_level} GROUP BY ALL"
        )
    if kind == FIRST:
        return (
            "SELECT session_id, user_id, min(last_turn) AS turn FROM profile_history "
            f"WHERE {_BEHAVIOURS[name]} > 0 GROUP BY ALL"
        )
    return (
        "SELECT session_id, user_id, turn FROM (SELECT session_id, user_id, turn, cause, min(turn) OVER "
        f"(PARTITION BY session_id) AS begun FROM topic_changes) WHERE cause = {quoted(name)} AND turn > begun"
    )


def evidence(pattern: Sequence[str], period: Period, policy: SequenceMining) -> str:
    """SQL of the sessions begun in the period in which the events come in this order, the last before the first alert.

    Each event is taken at its first turn after, or with, the one before it; two alike are different turns.
    """
    steps = []
    for n, event in enumerate(pattern, start=1):
        if n == 1:
            steps.append(
                f"step_1 AS (SELECT session_id, user_id, min(turn) AS turn FROM ({_source(event, policy)}) "
                f"WHERE {begun(period)} GROUP BY ALL)"
            )
            continue
        later = ">" if pattern[n - 2] == event else ">="
        steps.append(
            f"step_{n} AS (SELECT session_id, e.user_id, min(e.turn) AS turn FROM ({_source(event, policy)}) AS e "
            f"JOIN step_{n - 1} AS earlier USING (session_id) WHERE e.turn {later} earlier.turn GROUP BY ALL)"
        )
    steps.append("alerted AS (SELECT session_id, min(turn) AS alert_turn FROM alert_changes GROUP BY ALL)")
    return (
        f"WITH {', '.join(steps)} SELECT session_id, user_id, turn AS last_event_turn, alert_turn "
        f"FROM step_{len(pattern)} JOIN alerted USING (session_id) WHERE turn < alert_turn"
    )
