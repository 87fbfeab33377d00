"""Rows of a subject in the archive: `models.erasure.ErasureSubject.concerns` as SQL, over whole tables at once.

Rows of projects have what they mention in columns (`models.project.mentions`), so that it is found out in one place
only.

The archive has no requests of the memory role, so what is tied to them alone (the numbers of `memory_proposed`; its
text is not kept) stays.
"""

# ruff: noqa: S608 - tables and columns are constants of this package, values travel as parameters

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import duckdb

from models.erasure import APP_FIELD, TIED_FACTS, ErasureSubject
from models.events import space_key, user_key
from models.events.fields import paths_of_names
from streams.archive.schema import RAW, SKIPPED, TABLES, RawTable, ddl

_MEMORIES, _EPISODES, _VALUES, _ITEMS = "erased_memories", "erased_episodes", "erased_values", "erased_items"
_SESSIONS = "$sessions::VARCHAR[]"
_SPACE_USER = "CASE WHEN space = 'user' THEN user_id ELSE '' END"

_TIED = {
    "memories": f"(app_id, {_SPACE_USER}, memory_id) IN (FROM temp.{_MEMORIES})",
    "memory_compactions": (
        f"EXISTS (FROM temp.{_MEMORIES} AS e WHERE e.app_id = r.app_id "
        "AND e.user_id = CASE WHEN r.space = 'user' THEN r.user_id ELSE '' END "
        "AND list_contains([m.memory_id for m in list_concat(r.before, r.after)], e.memory_id))"
    ),
    "commands": (
        f"(app_id, user_id, coalesce(target_memory_id, memory_id)) IN (FROM temp.{_MEMORIES}) "
        f"OR (type = 'episode_summarised' AND (app_id, user_id, first_turn) IN (FROM temp.{_EPISODES}))"
    ),
    "facts": (
        f'(app_id, user_id, category, "key", valid_from) IN (FROM temp.{_VALUES}) '
        f"OR EXISTS (FROM temp.{_VALUES} AS e WHERE e.app_id = r.app_id AND e.user_id = r.user_id "
        'AND e.category = r.category AND e."key" = r."key" '
        "AND list_contains([past.valid_from for past in r.history], e.valid_from))"
    ),
}
"""Table → what makes rows the subject's that do not name it."""
_TIED_ITEMS = (
    f"EXISTS (FROM temp.{_ITEMS} AS e WHERE e.app_id = r.app_id AND e.project_id = r.project_id "
    "AND list_contains(r.mentioned_items, e.item_id))"
)
"""Likewise of any table with mentioned items."""


class SubjectRows:
    """Finds a subject's rows, by ties that are collected once: a second look after the deletion still knows them.

    Args:
        con: Writer of the archive; gets temporary tables.
        subject: Whose rows; its own ties are not used.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, subject: ErasureSubject) -> None:
        self._con = con
        self._subject = subject
        for name, columns, table, also in (
            (_MEMORIES, f"app_id, {_SPACE_USER} AS user_id, memory_id", "memories", "true"),
            (_EPISODES, "app_id, user_id, first_turn", "user_episodes", "true"),
            (_VALUES, 'app_id, user_id, category, "key", valid_from', "facts", f"cause IN {TIED_FACTS}"),
        ):
            self._run(
                f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT DISTINCT {columns} FROM {RAW}.{table} "
                f"WHERE {self._named(table)} AND {also}"
            )
        # Not those that others said, too.
        self._run(
            f"CREATE OR REPLACE TEMP TABLE {_ITEMS} AS SELECT app_id, project_id, item_id FROM {RAW}.project_items "
            f"WHERE {self._named('project_items')} GROUP BY ALL "
            f"HAVING bool_and(list_has_all({_SESSIONS}, mentioned_sessions))"
        )

    def condition(self, table: str) -> str:
        """SQL that is true for the subject's rows of a table, which the statement calls `r`; see `parameters`."""
        if table in (SKIPPED, "dead_letters"):
            return self._by_bytes()
        tied = _TIED_ITEMS if "mentioned_items" in ddl()[table] else _TIED.get(table, "false")
        return f"coalesce({self._named(table)} OR {tied}, false)"

    def parameters(self, sql: str) -> dict[str, Any]:
        """Values of the parameters that a statement with such a condition names."""
        subject = self._subject
        values = {
            "sessions": list(subject.session_ids),
            "app": subject.app_id,
            "user": subject.user_id,
            "session_needles": list(subject.session_needles),
            "name_needles": list(subject.name_needles),
            "app_needles": list(subject.app_needles),
            "app_field": APP_FIELD,
            "session_keys": [session.encode() for session in subject.session_ids],
            "keys": [key.encode() for key in _keys(subject)],
            "user_in_key": user_key("", subject.user_id).partition("/")[2].encode(),
        }
        return {name: value for name, value in values.items() if f"${name}::" in sql}

    def _run(self, sql: str) -> None:
        self._con.execute(sql, self.parameters(sql))

    def _named(self, table: str) -> str:
        columns = ddl()[table]
        ways = []
        if "session_id" in columns:
            ways.append(f"session_id IN (SELECT unnest({_SESSIONS}))")
        if "mentioned_sessions" in columns:
            ways.append(f"list_has_any(mentioned_sessions, {_SESSIONS})")
        else:
            ways += [f"list_has_any({listed}, {_SESSIONS})" for listed in _listed_sessions(TABLES[table])]
        if "app_id" in columns and self._subject.scope != "session":
            ways.append(self._by_name(columns))
        return f"coalesce({' OR '.join(ways) or 'false'}, false)"

    def _by_name(self, columns: Collection[str]) -> str:
        if self._subject.scope == "app":
            return "app_id = $app::VARCHAR"
        of_app = " AND app_id = $app::VARCHAR" if self._subject.app_id else ""
        mentioned = " OR list_contains(mentioned_users, $user::VARCHAR)" if "mentioned_users" in columns else ""
        return f"((user_id = $user::VARCHAR{mentioned}){of_app})"

    def _by_bytes(self) -> str:
        """Of refused and undecodable records only bytes are known; as text all that is not plain ASCII is escaped."""
        ways = ['"key" IN (SELECT unnest($session_keys::BLOB[]))', _holds("session_needles")]
        if self._subject.scope != "session":
            ways.append(self._by_key())
            elsewhere = f"contains(value::VARCHAR, $app_field::BLOB::VARCHAR) AND NOT {_holds('app_needles')}"
            here = f" AND NOT ({elsewhere})" if self._subject.app_needles else ""
            ways.append(f"({_holds('name_needles')}{here})")
        return f"coalesce({' OR '.join(ways)}, false)"

    def _by_key(self) -> str:
        if self._subject.scope == "user" and not self._subject.app_id:
            return (
                "(regexp_matches(\"key\"::VARCHAR, '^(user|app):') "
                "AND split_part(\"key\"::VARCHAR, '/', 2) = $user_in_key::BLOB::VARCHAR)"
            )
        return (
            'list_bool_or(["key"::VARCHAR = k::VARCHAR OR starts_with("key"::VARCHAR, k::VARCHAR || \'/\') '
            "for k in $keys::BLOB[]])"
        )


def _listed_sessions(table: RawTable) -> list[str]:
    """Lists of sessions that rows name beside `session_id`, as SQL.

    >>> from streams.archive.schema import TABLES
    >>> [*_listed_sessions(TABLES["memories"]), *_listed_sessions(TABLES["user_episodes"])]
    ['related_conversations', '[part.session_id for part in turns]']
    """
    lists = {column.name for column in table.columns if column.type.sql.endswith("[]")}
    paths = dict.fromkeys(path for event in table.carries for path in paths_of_names(event, "session"))
    found = (path for path in paths if path[0] in lists)
    return [field if not parts else f"[part.{'.'.join(parts)} for part in {field}]" for field, *parts in found]


def _holds(needles: str) -> str:
    return f"coalesce(list_bool_or([contains(value::VARCHAR, n::VARCHAR) for n in ${needles}::BLOB[]]), false)"


def _keys(subject: ErasureSubject) -> list[str]:
    """Keys that are the subject's, also where they go on after a slash."""
    if subject.scope == "app":
        app = space_key(subject.app_id)
        return [app, *(app.replace("app:", kind, 1) for kind in ("user:", "project:"))]
    return [space_key(subject.app_id, subject.user_id), user_key(subject.app_id, subject.user_id)]
