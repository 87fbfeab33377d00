"""Erasing a subject from the archive: its rows, the files and snapshots that had them, and every byte of the catalog.

Which rows are the subject's is `models.erasure.ErasureSubject.concerns` as SQL, over whole tables at once. Rows of
projects have columns with what they mention (`models.project.mentions`). The archive has no requests of the memory
role: what is tied to them alone (the numbers of `memory_proposed`; its text is not kept) stays.

Every step may be repeated, and is: killed at any point, the next call completes the work. Text is gone from the files,
not from the disk's blocks: that is up to the file system. `removal` removes the bytes.
"""

# ruff: noqa: S608 - tables and columns are constants of this package, values travel as parameters

from collections.abc import Collection
from datetime import datetime
from typing import Any

import duckdb
import structlog

from models.erasure import APP_FIELD, SESSION_PREFIX, TIED_FACTS, ErasureSubject
from models.events import DEFAULT_APP, space_key, user_key
from models.events.erase import ErasedStore
from models.events.fields import paths_of_names
from streams.archive.deduplication import look_again
from streams.archive.removal import PLACES, note_removed, remove_for_good
from streams.archive.schema import ERASED, LETTER_ERASED, RAW, SKIPPED, TABLES, RawTable, ddl
from streams.archive.writer import LakeWriter

_MEMORIES, _EPISODES, _VALUES, _ITEMS = "erased_memories", "erased_episodes", "erased_values", "erased_items"
_SESSIONS = "erased_sessions"
_NO_APP = "''"
"""Of a table whose rows name no app."""
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
    """Finds a subject's rows, by ties that are collected once: a second look after the deletion still knows them."""

    def __init__(self, con: duckdb.DuckDBPyConnection, subject: ErasureSubject) -> None:
        self._con = con
        self._subject = subject
        self._run(
            f"CREATE OR REPLACE TEMP TABLE {_SESSIONS} AS "
            "SELECT unnest($session_apps::VARCHAR[]) AS app_id, unnest($session_ids::VARCHAR[]) AS session_id"
        )
        for name, columns, table, also in (
            (_MEMORIES, f"app_id, {_SPACE_USER} AS user_id, memory_id", "memories", "true"),
            (_EPISODES, "app_id, user_id, first_turn", "user_episodes", "true"),
            (_VALUES, 'app_id, user_id, category, "key", valid_from', "facts", f"cause IN {TIED_FACTS}"),
        ):
            self._run(
                f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT DISTINCT {columns} FROM {RAW}.{table} AS r "
                f"WHERE {self._named(table)} AND {also}"
            )
        # Not those that others said, too.
        self._run(
            f"CREATE OR REPLACE TEMP TABLE {_ITEMS} AS SELECT app_id, project_id, item_id "
            f"FROM {RAW}.project_items AS r WHERE {self._named('project_items')} GROUP BY ALL "
            f"HAVING bool_and(list_has_all({_ids_of('r.app_id')}, mentioned_sessions))"
        )

    def condition(self, table: str) -> str:
        """SQL that is true for the subject's rows of a table, which the statement calls `r`; see `parameters`."""
        if table in (SKIPPED, "dead_letters"):
            return self._by_bytes()
        tied = _TIED_ITEMS if "mentioned_items" in ddl()[table] else _TIED.get(table, "false")
        return f"coalesce({self._named(table)} OR {tied}, false)"

    def parameters(self, sql: str) -> dict[str, Any]:
        """Values of the parameters that a statement with such a condition names."""
        subject, sessions = self._subject, sorted(self._subject.sessions)
        values = {
            "session_apps": [session.app_id for session in sessions],
            "session_ids": [session.session_id for session in sessions],
            "app": subject.app_id,
            "user": subject.user_id,
            "by_app": [names._asdict() for names in subject.by_app],
            "user_needles": list(subject.user_needles),
            "app_needles": list(subject.app_needles),
            "app_field": APP_FIELD,
            "keys": [key.encode() for key in _keys(subject)],
            "user_in_key": user_key("", subject.user_id).partition("/")[2].encode(),
        }
        return {name: value for name, value in values.items() if f"${name}::" in sql}

    def _run(self, sql: str) -> None:
        self._con.execute(sql, self.parameters(sql))

    def _named(self, table: str) -> str:
        columns = ddl()[table]
        app = "coalesce(r.app_id, '')" if "app_id" in columns else _NO_APP
        ways = []
        if "session_id" in columns:
            ways.append(f"({app}, r.session_id) IN (FROM temp.{_SESSIONS})")
        listed = ["mentioned_sessions"] if "mentioned_sessions" in columns else _listed_sessions(TABLES[table])
        ways += [f"list_has_any({each}, {_ids_of(app)})" for each in listed]
        if self._subject.scope != "session" and {"app_id", self._subject.scope + "_id"} <= columns.keys():
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
        subject, ways = self._subject, [_OF_SESSIONS]
        if subject.scope != "session":
            ways.append(self._by_key())
        if subject.scope == "app":
            ways.append(_names_app("$app_needles::BLOB[]"))
        if subject.scope == "user":
            unnamed = f" OR NOT {_HAS_APP}" if subject.app_id == DEFAULT_APP else ""
            here = f" AND ({_names_app('$app_needles::BLOB[]')}{unnamed})" if subject.app_id else ""
            ways.append(f"({_holds('$user_needles::BLOB[]')}{here})")
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


def _ids_of(app: str) -> str:
    """The subject's sessions of an app, as a list."""
    return f"coalesce((SELECT list(e.session_id) FROM temp.{_SESSIONS} AS e WHERE e.app_id = {app}), [])"


_VALUE = "coalesce(value, ''::BLOB)::VARCHAR"
_HAS_APP = f"contains({_VALUE}, $app_field::BLOB::VARCHAR)"
_GAP = r"(?: |\\x09|\\x0A|\\x0D)*"
"""White space of JSON in a pattern for bytes as text."""


def _holds(needles: str) -> str:
    return f"coalesce(list_bool_or([contains({_VALUE}, n::VARCHAR) for n in {needles}]), false)"


def _names_app(forms: str) -> str:
    """A field says that the record is of an app."""
    pattern = f"regexp_escape($app_field::BLOB::VARCHAR) || '{_GAP}:{_GAP}' || regexp_escape(n::VARCHAR)"
    return f"coalesce(list_bool_or([regexp_matches({_VALUE}, {pattern}) for n in {forms}]), false)"


_OF_SESSIONS = (
    f"coalesce(list_bool_or([CASE WHEN {_HAS_APP} THEN {_names_app('names.app')} "
    f"""WHEN starts_with("key"::VARCHAR, '{SESSION_PREFIX.decode()}') """
    """THEN starts_with("key"::VARCHAR, names.key_prefix::VARCHAR) ELSE names.is_default END """
    f"""AND (coalesce(list_contains(names.keys, "key"), false) OR {_holds("names.sessions")}) """
    "for names in $by_app::STRUCT(app BLOB[], is_default BOOLEAN, key_prefix BLOB, keys BLOB[], sessions BLOB[])[]]), "
    "false)"
)
"""A refused record names a session of the subject, see `models.erasure`."""


def _keys(subject: ErasureSubject) -> list[str]:
    """Keys that are the subject's, also where they go on after a slash."""
    if subject.scope == "app":
        app = space_key(subject.app_id)
        return [app, *(app.replace("app:", kind, 1) for kind in ("user:", "project:"))]
    return [space_key(subject.app_id, subject.user_id), user_key(subject.app_id, subject.user_id)]


log = structlog.get_logger(__name__)


def erase(writer: LakeWriter, subject: ErasureSubject, *, now: datetime) -> list[ErasedStore]:
    """Remove every row of the subject, and their bytes; the offsets are noted as `erased`.

    Blocking, and it takes as long as the files with such rows take to be written anew; nothing lands meanwhile.

    Returns:
        What was looked at, removed and found by a second look, by table. After a call that was cut short, the rows that
        it removed are not counted again.

    Raises:
        StoreUnavailable: The archive cannot be written, or a reader keeps the catalog. Some of it may be done: call
            again.
    """
    with writer.exclusively("erasing"):
        mine = SubjectRows(writer.con, subject)
        looked_at, found = _count(writer.con, mine)
        removed = _delete(writer, mine, now) if any(found.values()) else found
        _, remaining = _count(writer.con, mine)
        remove_for_good(writer, now=now)
    log.info("archive_erased", rows=sum(removed.values()))
    return [
        ErasedStore(
            store=f"archive {name}", looked_at=looked_at[name], removed=removed[name], remaining=remaining[name]
        )
        for name in looked_at
    ]


def _count(con: duckdb.DuckDBPyConnection, mine: SubjectRows) -> tuple[dict[str, int], dict[str, int]]:
    """Rows of each table, and how many of them are the subject's."""
    sql = " UNION ALL ".join(
        f"SELECT '{name}', count(*), count(*) FILTER ({mine.condition(name)}) FROM {RAW}.{name} AS r"
        for name in (*TABLES, SKIPPED)
    )
    counted = con.execute(sql, mine.parameters(sql)).fetchall()
    return {name: rows for name, rows, _ in counted}, {name: found for name, _, found in counted}


def _delete(writer: LakeWriter, mine: SubjectRows, now: datetime) -> dict[str, int]:
    """Delete, and note the offsets, in one transaction; returns how many rows of each table went."""
    con = writer.con
    places = f"CREATE OR REPLACE TEMP TABLE {PLACES} AS " + " UNION ALL ".join(
        f"SELECT '{name}' AS name, '{table.topic.name}' AS topic, kafka_partition, kafka_offset "
        f"FROM {RAW}.{name} AS r WHERE {mine.condition(name)}"
        for name, table in TABLES.items()
    )
    con.execute(places, mine.parameters(places))
    removed = dict(con.execute(f"SELECT name, count(*) FROM temp.{PLACES} GROUP BY name").fetchall())
    with writer.transaction():
        if "dead_letters" in removed:
            con.execute(_LETTERS, [LETTER_ERASED])
        for name in removed:
            con.execute(
                f"DELETE FROM {RAW}.{name} WHERE (kafka_partition, kafka_offset) IN "
                f"(SELECT kafka_partition, kafka_offset FROM temp.{PLACES} WHERE name = '{name}')"
            )
        blank = (
            f"UPDATE {RAW}.{SKIPPED} AS r SET reason = '{ERASED}', detail = '', \"key\" = NULL, value = NULL "
            f"WHERE {mine.condition(SKIPPED)}"
        )
        ((blanked,),) = con.execute(blank, mine.parameters(blank)).fetchall()
        note_removed(con, ERASED, now)
        look_again(con, removed)
    return {name: removed.get(name, 0) for name in TABLES} | {SKIPPED: blanked}


_LETTERS = f"""
UPDATE {RAW}.{SKIPPED} AS s SET detail = ?
FROM {RAW}.dead_letters AS d JOIN temp.{PLACES} AS p USING (kafka_partition, kafka_offset)
WHERE p.name = 'dead_letters' AND s.topic = d.topic AND s.kafka_partition = d."partition"
  AND s.first_offset = d."offset"
"""
