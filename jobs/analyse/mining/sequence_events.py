"""Events of a session that patterns are made of, twice: as Ibis expressions for mining, as SQL for the evidence.

* `mode …`: the mode becomes this one (`risk_points`); sessions begin calm.
* `signal …`: a signal of the profile reaches `signal_level` for the first time (`profile_history`). The level is left
  to the mode.
* `first …`: the first hypothetical question, rephrased probe or instruction about the rules that the profile counted.
* `topic started`, `topic returned`: another topic after the first one, or one that had been left (`topic_changes`).

The archive has no event for a refusal: what users do about one (`first probing`) stands for it.
"""

# ruff: noqa: S608 - names are constants of this module, days are dates, texts are literal

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import ibis

from jobs.analyse.mining.job import Period, begun
from jobs.analyse.mining.tables import Tables
from models.events import Mode
from models.policy.archive import SequenceMining
from streams.archive.catalog import literal

if TYPE_CHECKING:
    import ibis.expr.types as ir

MODE, SIGNAL, FIRST, TOPIC = "mode", "signal", "first", "topic"
_LEVEL = "level"
_BEHAVIOURS = {
    "hypothetical question": "hypothetical_count",
    "probing": "probing_attempts",
    "instruction about rules": "meta_instruction_count",
}
_BEGIN = literal(Mode.CALM)
_TOPICS = ("started", "returned")
_ALERTED = "session_id IN (SELECT session_id FROM alerted)"


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


def _sources(policy: SequenceMining) -> Iterator[str]:
    """SQL of `session_id, user_id, turn, event`, for each kind of event."""
    yield (
        f"SELECT session_id, user_id, turn, '{MODE} ' || mode AS event FROM risk_points "
        f"WHERE {_ALERTED} QUALIFY mode <> lag(mode, 1, {_BEGIN}) OVER (PARTITION BY session_id ORDER BY turn)"
    )
    yield (
        f"SELECT session_id, user_id, min(last_turn), '{SIGNAL} ' || signal.name FROM (SELECT session_id, user_id, "
        f"last_turn, unnest(signals) AS signal FROM profile_history WHERE {_ALERTED}) "
        f"WHERE signal.value >= {policy.signal_level} AND signal.name <> {literal(_LEVEL)} GROUP BY ALL"
    )
    for name, column in _BEHAVIOURS.items():
        yield (
            f"SELECT session_id, user_id, min(last_turn), {literal(f'{FIRST} {name}')} FROM profile_history "
            f"WHERE {column} > 0 AND {_ALERTED} GROUP BY ALL"
        )
    yield (
        f"SELECT session_id, user_id, turn, '{TOPIC} ' || cause FROM (SELECT session_id, user_id, turn, cause, "
        f"min(turn) OVER (PARTITION BY session_id) AS begun FROM topic_changes WHERE {_ALERTED}) "
        f"WHERE cause IN ({', '.join(map(literal, _TOPICS))}) AND turn > begun"
    )


def evidence(pattern: Sequence[str], period: Period, policy: SequenceMining) -> str:
    """SQL of the sessions begun in the period whose last events before the first alert hold the pattern.

    It makes of the views what `sequences.refine` makes of the events, for sessions that alert.
    """
    union = "\n  UNION ALL ".join(_sources(policy))
    wanted = "%".join(f"[{event}]" for event in pattern).replace("_", "\\_")
    return (
        f"WITH alerted AS (SELECT session_id, min(turn) AS alert_turn FROM alert_changes WHERE {begun(period)} "
        f"GROUP BY ALL),\nevents AS (\n  {union}\n),\n"
        "changed AS (SELECT * FROM events QUALIFY event IS DISTINCT FROM "
        "lag(event) OVER (PARTITION BY session_id ORDER BY turn, event)),\n"
        "kept AS (SELECT * FROM changed QUALIFY "
        f"row_number() OVER (PARTITION BY session_id ORDER BY turn, event) <= {policy.longest_sequence}),\n"
        "before AS (SELECT * FROM kept JOIN alerted USING (session_id) WHERE turn < alert_turn QUALIFY "
        f"row_number() OVER (PARTITION BY session_id ORDER BY turn DESC, event DESC) <= {policy.before_alert})\n"
        "SELECT session_id, any_value(user_id) AS user_id, any_value(alert_turn) AS alert_turn, "
        "string_agg('[' || event || ']', ' ' ORDER BY turn, event) AS last_events\n"
        f"FROM before GROUP BY session_id HAVING last_events LIKE {literal(f'%{wanted}%')} ESCAPE '\\'"
    )
