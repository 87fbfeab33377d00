"""Segments, episodes, topics, alerts and what users are told, against the turns they are made of."""

# ruff: noqa: S608 - tables are constants of this project, values are numbers

from __future__ import annotations

import duckdb

from jobs.archive.parity.found import Parity, checked
from jobs.archive.parity.turns import Place, caused_at
from models.events.base import Role
from models.policy import Policy
from streams.archive.catalog import literal

SEGMENTS, EPISODES, TOPICS, ALERTS, USER_TURNS = "segments", "episodes", "topics", "alerts", "turns of users"
_OF_SEGMENTS = ("first_turn", "last_turn", "tokens_before", "bytes_before", "started_at", "ended_at")
_OF_EPISODES = (
    *("first_turn", "last_turn", "turn_count", "started_at", "ended_at"),
    *("peak_risk", "mean_risk", "alerts", "mode"),
)

_ENDED = 'SELECT session_id, life, o, turn_o, mode, mean_risk FROM parity_claimed WHERE NOT "open"'
"""Closing profiles with the life that they close."""


def _known(view: str, place: Place) -> str:
    """Events of a view that this partition caused, of sessions of which something is told."""
    return f"""
        SELECT *, source."offset" AS o FROM {view} ANTI JOIN parity_returned USING (session_id)
        WHERE {caused_at(place)}
    """


def _changed(names: tuple[str, ...]) -> str:
    return " UNION ALL ".join(
        f"SELECT 'changed' AS kind, id || ' {name}' AS what FROM compared WHERE {name} IS DISTINCT FROM told_{name}"
        for name in names
    )


def check_segments(con: duckdb.DuckDBPyConnection, found: Parity, place: Place) -> None:
    """Every compaction's turns counted, its sizes and times are theirs, and a life that ended is compacted as a whole.

    A summary that came later stands for the same turns.
    """
    checked(
        con,
        found,
        SEGMENTS,
        of=f"SELECT count(*) FROM ({_known('compactions', place)})",
        differing=f"""
          WITH known AS ({_known("compactions", place)}),
          each_turn AS (SELECT id, session_id, o, unnest(turns) AS turn FROM known),
          sums AS (
            SELECT e.id, count(t.turn) AS counted, min(e.turn) AS told_first_turn, max(e.turn) AS told_last_turn,
              sum(t.tokens)::BIGINT AS told_tokens_before, sum(t.content_bytes)::BIGINT AS told_bytes_before,
              min(t.timestamp) AS told_started_at, max(t.timestamp) AS told_ended_at
            FROM each_turn AS e
            LEFT JOIN parity_turns AS t
              ON t.session_id = e.session_id AND t.turn = e.turn AND t.verdict = 'new' AND t.o <= e.o
            GROUP BY e.id
          ),
          compared AS (SELECT k.*, s.* EXCLUDE (id) FROM known AS k JOIN sums AS s USING (id)),
          standing AS (
            SELECT session_id, unnest(turns) AS turn FROM (
              SELECT session_id, turns FROM known
              QUALIFY row_number() OVER (PARTITION BY session_id, first_turn, last_turn ORDER BY o) = 1
            )
          )
          {_changed(_OF_SEGMENTS)}
          UNION ALL
          SELECT 'false', id FROM compared WHERE counted <> len(turns)
          UNION ALL
          SELECT 'doubled', session_id || ' ' || turn FROM standing GROUP BY session_id, turn HAVING count(*) > 1
          UNION ALL
          SELECT 'missing', t.session_id || ' ' || t.turn FROM parity_turns AS t
          JOIN ({_ENDED}) AS e ON e.session_id = t.session_id AND e.life = t.life
          ANTI JOIN standing AS s ON s.session_id = t.session_id AND s.turn = t.turn
          WHERE t.verdict = 'new' AND e.o <= (SELECT max(o) FROM known)
        """,
    )


def check_episodes(con: duckdb.DuckDBPyConnection, found: Parity, place: Place) -> None:
    """Every life that ended has one episode, with its turns, times, risk and alerts."""
    checked(
        con,
        found,
        EPISODES,
        of=f"SELECT count(*) FROM ({_known('episodes', place)})",
        differing=f"""
          WITH known AS ({_known("episodes", place)}), ended AS ({_ENDED}),
          raised AS (
            SELECT t.session_id, t.life, sum(t.alerts)::BIGINT AS alerts FROM parity_turns AS t GROUP BY ALL
          ),
          compared AS (
            SELECT k.*, e.mode AS told_mode, e.mean_risk AS told_mean_risk,
              coalesce(t.first_turn, k.first_turn) AS told_first_turn,
              coalesce(t.last_turn, k.last_turn) AS told_last_turn,
              coalesce(t.turn_count, 0) AS told_turn_count, coalesce(t.started_at, k.started_at) AS told_started_at,
              coalesce(t.ended_at, k.ended_at) AS told_ended_at, coalesce(t.peak_risk, 0.0) AS told_peak_risk,
              coalesce(r.alerts, 0) AS told_alerts
            FROM known AS k
            JOIN ended AS e USING (session_id, o)
            LEFT JOIN parity_turns AS t ON t.o = e.turn_o
            LEFT JOIN raised AS r ON r.session_id = e.session_id AND r.life = e.life
          )
          {_changed(_OF_EPISODES)}
          UNION ALL
          SELECT 'doubled', min(id) FROM known GROUP BY session_id, o HAVING count(*) > 1
          UNION ALL
          SELECT 'false', id FROM known ANTI JOIN ended USING (session_id, o)
          UNION ALL
          SELECT 'missing', session_id || ' ' || o FROM ended ANTI JOIN known USING (session_id, o)
          WHERE o <= (SELECT max(o) FROM known)
        """,
    )


def check_topics(con: duckdb.DuckDBPyConnection, found: Parity, place: Place) -> None:
    """Topics count the messages that they name, name turns that count, and no message stands in two of them."""
    checked(
        con,
        found,
        TOPICS,
        of=f"SELECT count(*) FROM ({_known('topic_changes', place)})",
        differing=f"""
          WITH known AS ({_known("topic_changes", place)}),
          each_turn AS (
            SELECT id, session_id, o, unnest(list_concat(active_turns, packed_turns)) AS turn FROM known
          )
          SELECT 'changed' AS kind, id || ' message_count' AS what FROM known
          WHERE message_count <> len(active_turns) + len(packed_turns) + released_messages
          UNION ALL
          SELECT 'changed', id || ' compaction.ratio' FROM known
          WHERE compaction.bytes_before > 0
            AND compaction.ratio <> compaction.bytes_after / compaction.bytes_before
          UNION ALL
          SELECT 'changed', id || ' compaction.turns' FROM known
          WHERE compaction IS NOT NULL
            AND NOT list_has_all(list_concat(packed_turns, compaction.released_turns), compaction.turns)
          UNION ALL
          SELECT 'doubled', min(id) || ' ' || turn FROM each_turn GROUP BY id, turn HAVING count(*) > 1
          UNION ALL
          SELECT 'false', e.id || ' ' || e.turn FROM each_turn AS e
          ANTI JOIN parity_turns AS t
            ON t.session_id = e.session_id AND t.turn = e.turn AND t.verdict = 'new' AND t.o <= e.o
        """,
    )


def check_alerts(con: duckdb.DuckDBPyConnection, found: Parity, place: Place) -> None:
    """Every alert was raised once, by a turn that counts, tells of it in a profile, and rests on risks as they were."""
    checked(
        con,
        found,
        ALERTS,
        of=f"SELECT count(*) FROM ({_known('alert_changes', place)})",
        differing=f"""
          WITH known AS ({_known("alert_changes", place)}),
          proof AS (SELECT id, session_id, unnest(evidence) AS turn FROM known),
          raised AS (SELECT alert_id, count(*) FILTER (cause = 'raised') AS times FROM known GROUP BY alert_id)
          SELECT 'missing' AS kind, alert_id AS what FROM raised WHERE times = 0
          UNION ALL
          SELECT 'doubled', alert_id FROM raised WHERE times > 1
          UNION ALL
          SELECT 'false', id FROM known AS k
          ANTI JOIN parity_turns AS t ON t.session_id = k.session_id AND t.o = k.o AND t.verdict = 'new'
          WHERE k.cause = 'raised'
          UNION ALL
          SELECT 'changed', k.id || ' turn' FROM known AS k
          JOIN parity_turns AS t ON t.session_id = k.session_id AND t.o = k.o
          WHERE k.cause = 'raised' AND k.turn <> t.last_turn
          UNION ALL
          SELECT 'changed', p.id || ' evidence ' || p.turn.turn FROM proof AS p
          JOIN parity_points AS r ON r.session_id = p.session_id AND r.turn = p.turn.turn
          WHERE p.turn.risk <> r.risk
          UNION ALL
          SELECT 'missing', id || ' profile' FROM known AS k
          ANTI JOIN parity_profiles AS p ON p.session_id = k.session_id AND p.o = k.o
          WHERE k.o <= (SELECT max(o) FROM parity_profiles)
        """,
    )


def check_user_turns(con: duckdb.DuckDBPyConnection, found: Parity, place: Place, policy: Policy) -> None:
    """Every turn of a user or an assistant that counts was handed to the user's memory, and nothing else."""
    if not policy.users.enabled:
        return
    speakers = f"{literal(Role.USER.value)}, {literal(Role.ASSISTANT.value)}"
    checked(
        con,
        found,
        USER_TURNS,
        of=f"SELECT count(*) FROM parity_turns WHERE verdict = 'new' AND role IN ({speakers})",
        differing=f"""
          WITH told AS (
            SELECT DISTINCT session_id, turn, user_id, app_id, source."offset" AS o FROM raw.commands
            ANTI JOIN parity_returned USING (session_id)
            WHERE type = 'user_turn_added' AND {caused_at(place)}
          ),
          spoken AS (
            SELECT session_id, turn, user_id, app_id, o FROM parity_turns ANTI JOIN parity_returned USING (session_id)
            WHERE verdict = 'new' AND role IN ({speakers})
          )
          SELECT 'false' AS kind, session_id || ' ' || turn AS what FROM (FROM told EXCEPT FROM spoken)
          UNION ALL
          SELECT 'missing', session_id || ' ' || turn FROM (FROM spoken EXCEPT FROM told)
          WHERE o <= (SELECT max(o) FROM told)
        """,
    )
