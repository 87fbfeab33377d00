"""SQL views over the tables of `raw`, kept in the catalog, so that every DuckDB client has them.

The log repeats events after a crash (with the same `id`) and may carry a turn twice; readers see each once (`once`):

* of a turn (`app_id`, `session_id`, `turn`) the first by log order wins, as in the fold;
* of an event with an `id` one row is kept;
* what stands for the latest (`alerts`, `alert_labels`, `profiles`, `segments`, `topics`, `windows`, `app_memories`,
  `projects` and what they hold) is the last by log order. All events of one key are on one partition, so log order is
  total there;
* a turn belongs to the topic whose event named it last. A turn that no event names yet belongs to the active topic: it
  came after the last event of that one.

The rows of a view have no order of their own.
"""

# ruff: noqa: S608 - tables and columns are constants of this package, values travel as parameters and frames

from __future__ import annotations

from collections.abc import Mapping

from models.entities import REGISTRY
from models.events import TopicCompaction
from streams.archive.views.once import LOG_ORDER, NEWEST_FIRST, Marks, Once


def _last(table: str, key: str) -> str:
    """The newest row of each key, where there are few keys: DuckDB keeps one row of each, and sorts nothing."""
    return f"SELECT * FROM raw.{table} QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY kafka_offset DESC) = 1"


_OF_EVENTS = {name: (each.table, view) for each in REGISTRY.emits.values() for name, view in each.views.items()}
ONCE: dict[str, Once] = {
    rule.name: rule
    for rule in (
        Once("turns", "turns", ("app_id", "session_id", "turn")),
        Once("risk_points", "risk_points", ("app_id", "session_id", "turn"), part="turn"),
        *(
            Once(name, table, view.by, LOG_ORDER if view.takes == "first" else NEWEST_FIRST)
            for name, (table, view) in _OF_EVENTS.items()
            if not view.keyed
        ),
    )
}
"""View → the rule by which it is made of its table, where most rows stand and few are repeats."""

_SESSIONS = f"""
WITH latest AS ({_last("profiles", "app_id, session_id")}),
ended AS (SELECT app_id, session_id, max(timestamp) AS ended_at FROM raw.episodes GROUP BY app_id, session_id),
firing AS (SELECT app_id, session_id, count(DISTINCT alert_id) AS alerts FROM raw.alerts GROUP BY app_id, session_id)
SELECT
  t.session_id,
  any_value(t.user_id) AS user_id,
  t.app_id,
  any_value(t.project_id) AS project_id,
  min(t.timestamp) AS first_at,
  max(t.timestamp) AS last_at,
  count(*) AS turns,
  count(*) FILTER (t.role = 'user') AS user_turns,
  sum(t.content_bytes)::BIGINT AS content_bytes,
  any_value(p."open") AS "open",
  any_value(e.ended_at) AS ended_at,
  any_value(p.mode) AS mode,
  any_value(p.peak_risk) AS peak_risk,
  any_value(p.mean_risk) AS mean_risk,
  any_value(p.score) AS score,
  any_value(p.suspicion) AS suspicion,
  coalesce(any_value(f.alerts), 0) AS alerts
FROM v1.turns t
LEFT JOIN latest p USING (app_id, session_id)
LEFT JOIN ended e USING (app_id, session_id)
LEFT JOIN firing f USING (app_id, session_id)
GROUP BY t.app_id, t.session_id
"""

# A window of a session closes on one partition; an app's is the sum of what each partition saw of it.
_WINDOWS = f"""
SELECT
  scope,
  app_id,
  session_id,
  window_start,
  window_end,
  sum(turns)::BIGINT AS turns,
  sum(turns_per_minute) AS turns_per_minute,
  sum(risk_sum) AS risk_sum,
  sum(risk_sum) / nullif(sum(scored_turns), 0) AS risk_mean,
  max(risk_max) AS risk_max,
  sum(scored_turns)::BIGINT AS scored_turns,
  sum(alerts)::BIGINT AS alerts,
  sum(late_turns)::BIGINT AS late_turns,
  count(*) AS partitions
FROM ({_last("windows", 'scope, app_id, session_id, window_start, source."partition"')})
GROUP BY scope, app_id, session_id, window_start, window_end
"""

_LINEAGE = ", ".join(f'compaction."{name}" AS "{name}"' for name in TopicCompaction.__struct_fields__)

_TOPIC_COMPACTIONS = f"""
SELECT id, session_id, user_id, app_id, timestamp, topic_id, title, {_LINEAGE}, message_count, released_messages
FROM v1.topic_changes
WHERE compaction IS NOT NULL
"""

_ALERTS = f"""
SELECT
  *,
  escalation.probability AS probability,
  escalation.threshold AS threshold,
  escalation.model AS model
FROM ({_last("alerts", "app_id, session_id, alert_id")})
"""

# Beside each label the alert as it was raised: by what score and rules somebody was woken. A label that names another
# session or app than the alert's tells nothing of the alert.
_ALERT_LABELS = """
WITH labels AS (SELECT * FROM raw.controls WHERE type = 'alert_labelled'),
raised AS (SELECT * FROM raw.alerts
  QUALIFY row_number() OVER (
    PARTITION BY app_id, session_id, alert_id ORDER BY kafka_partition, kafka_offset
  ) = 1)
SELECT
  l.alert_id,
  l.session_id,
  coalesce(r.app_id, nullif(l.app_id, '')) AS app_id,
  l.escalating,
  l.reason,
  l."by",
  l.timestamp AS labelled_at,
  r.fired_at,
  r.turn,
  r.severity,
  r.score,
  r.escalation.probability AS probability,
  r.escalation.threshold AS threshold,
  r.escalation.model AS model,
  r.policy_version,
  r.policy_digest
FROM labels l
LEFT JOIN raised r ON r.alert_id = l.alert_id AND r.session_id = l.session_id
  AND coalesce(nullif(l.app_id, ''), r.app_id) = r.app_id
QUALIFY row_number() OVER (
  PARTITION BY l.alert_id, l.session_id, coalesce(r.app_id, nullif(l.app_id, '')) ORDER BY l.kafka_offset DESC
) = 1
"""

_TOPIC_TURNS = """
WITH events AS (
  SELECT app_id, session_id, topic_id, kafka_offset,
    list_concat(active_turns, packed_turns, coalesce(compaction.released_turns, [])) AS turns
  FROM v1.topic_changes
),
named AS (
  SELECT app_id, session_id, turn, topic_id
  FROM (SELECT app_id, session_id, topic_id, kafka_offset, unnest(turns) AS turn FROM events)
  QUALIFY row_number() OVER (PARTITION BY app_id, session_id, turn ORDER BY kafka_offset DESC) = 1
),
latest_active AS (
  SELECT app_id, session_id, topic_id, source
  FROM v1.topics
  WHERE active
  QUALIFY row_number() OVER (PARTITION BY app_id, session_id ORDER BY kafka_offset DESC) = 1
),
following AS (
  SELECT t.app_id, t.session_id, t.turn, a.topic_id
  FROM v1.turns t JOIN latest_active a ON a.app_id = t.app_id AND a.session_id = t.session_id
  WHERE t.kafka_offset >= a.source."offset"
)
SELECT session_id, turn, topic_id, app_id FROM named
UNION ALL
SELECT session_id, turn, topic_id, app_id FROM following ANTI JOIN named USING (app_id, session_id, turn)
"""

# A space is an app, or a user in an app; memories of the one and of the other are counted by themselves.
_SPACE = "app_id, space, CASE WHEN space = 'user' THEN user_id ELSE '' END"

_APP_MEMORIES = f"""
SELECT * FROM ({_last("memories", f"{_SPACE}, memory_id")})
WHERE active
"""

_PROJECT_ITEMS = f"""
SELECT * FROM ({_last("project_items", "app_id, project_id, kind, slot")})
WHERE active
"""


def _of_project(kind: str) -> str:
    """The present items of a kind, each field a column."""
    return f"SELECT app_id, project_id, slot, revision, cause, {kind}.* FROM v1.project_items WHERE kind = '{kind}'"


_PROJECT_RELATIONSHIPS = """
WITH edges AS (SELECT app_id, project_id, id AS source_id, unnest(relationships) AS edge FROM v1.project_memories)
SELECT app_id, project_id, source_id, edge.* FROM edges
"""

# What was known before stands in a memory's history, the oldest first: each until the next one was recorded.
_PROJECT_MEMORY_HISTORY = """
WITH known AS (
  SELECT app_id, project_id, id AS memory_id, type, subject, unnest(list_append(history, {
    'recorded_at': recorded_at, 'content': content, 'importance': importance,
    'valid_from': valid_from, 'valid_until': valid_until
  }), recursive := true)
  FROM v1.project_memories
)
SELECT *, lead(recorded_at) OVER (PARTITION BY app_id, project_id, memory_id ORDER BY recorded_at) AS known_until
FROM known
"""

_ELSE: dict[str, str] = {
    **{name: _last(table, ", ".join(view.by)) for name, (table, view) in _OF_EVENTS.items() if view.keyed},
    "controls": "SELECT * FROM raw.controls",
    "windows": _WINDOWS,
    "alerts": _ALERTS,
    "alert_labels": _ALERT_LABELS,
    "topic_compactions": _TOPIC_COMPACTIONS,
    "topic_turns": _TOPIC_TURNS,
    "app_memories": _APP_MEMORIES,
    "app_memory_spaces": _last("memory_spaces", _SPACE),
    "project_items": _PROJECT_ITEMS,
    "project_memories": _of_project("memory"),
    "project_relationships": _PROJECT_RELATIONSHIPS,
    "project_memory_history": _PROJECT_MEMORY_HISTORY,
    "project_episodes": _of_project("episode"),
    "project_chunks": _of_project("chunk"),
    "project_conversations": _of_project("conversation"),
    "project_pending": _of_project("pending"),
    "project_commands": "SELECT * FROM raw.project_commands",
    "erasures": _last("erasures", "request_id"),
    "retentions": "SELECT * FROM raw.retained",
    "commands": "SELECT * FROM raw.commands",
    "sessions": _SESSIONS,
}

# fmt: off
_FIRST = (
    "turns", "controls", "profiles", "profile_history", "risk_points", "windows", "alert_changes", "alerts",
    "alert_labels", "compactions", "segments", "topic_changes", "topics", "topic_compactions",
    "topic_turns", "episodes", "user_episodes", "fact_changes", "facts", "user_memories", "app_memories",
    "app_memory_changes", "app_memory_spaces", "app_memory_compactions", "app_memory_skips",
    "app_memory_audit", "projects", "project_items", "project_memories", "project_relationships",
    "project_memory_history", "project_episodes", "project_chunks", "project_conversations",
    "project_pending", "project_changes", "project_history", "project_consolidations",
    "project_audit", "project_commands", "erasures", "retentions", "commands", "audit", "dead_letters",
    "sessions",
)
# fmt: on
VIEW_NAMES = tuple(dict.fromkeys((*_FIRST, *_OF_EVENTS)))
"""In the order of creation: some read others that stand before them."""


def definitions(marks: Mapping[str, Marks]) -> dict[str, str]:
    """Each view's query, in the order of creation. Marks: table → up to where its repeats are in `raw.repeats`."""
    return {
        view: ONCE[view].sql(marks.get(ONCE[view].table, {})) if view in ONCE else _ELSE[view] for view in VIEW_NAMES
    }
