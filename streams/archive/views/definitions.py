"""SQL views over the tables of `raw`, kept in the catalog, so that every DuckDB client has them.

The log repeats events after a crash (with the same `id`) and may carry a turn twice; readers see each once (`once`):

* of a turn (`app_id`, `session_id`, `turn`) the first by log order wins, as in the fold, with its last text
  (`turn_texts` has all of them);
* of an event with an `id` one row is kept;
* what stands for the latest (`alerts`, `alert_labels`, `profiles`, `segments`, `topics`, `windows`, `app_memories`,
  `projects` and what they hold) is the last by log order. All events of one key are on one partition, so log order is
  total there;
* a turn belongs to the topic whose event named it last. A turn that no event names yet belongs to the active topic: it
  came after the last event of that one.

The rows of a view have no order of their own.
"""

# ruff: noqa: S608 - tables and columns are constants of this package, values travel as parameters and frames

from collections.abc import Mapping
from importlib.resources import files
from string import Template

import msgspec
from msgspec import Struct

from models.entities import REGISTRY
from models.events import TopicCompaction
from streams.archive.views.once import LOG_ORDER, NEWEST_FIRST, Marks, Once


def _last(table: str, key: str) -> str:
    """The newest row of each key, where there are few keys: DuckDB keeps one row of each, and sorts nothing."""
    return f"SELECT * FROM raw.{table} QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY kafka_offset DESC) = 1"


_OF_EVENTS = {name: (each.table, view) for each in REGISTRY.emits.values() for name, view in each.views.items()}
_NUMBERED = Once("numbered_turns", "numbered_turns", ("id",))
ONCE: dict[str, Once] = {
    rule.name: rule
    for rule in (
        Once("turns", "turns", ("app_id", "session_id", "turn"), beside=_NUMBERED),
        Once("risk_points", "risk_points", ("app_id", "session_id", "turn"), part="turn"),
        Once(
            "windows", "windows", ("scope", "app_id", "session_id", "window_start", 'source."partition"'), NEWEST_FIRST
        ),
        *(
            Once(name, table, view.by, LOG_ORDER if view.takes == "first" else NEWEST_FIRST)
            for name, (table, view) in _OF_EVENTS.items()
            if not view.keyed
        ),
    )
}
"""View → the rule by which it is made of its table, where most rows stand and few are repeats."""


class _Texts(Struct, forbid_unknown_fields=True):
    """As `definitions.toml` has them.

    Attributes:
        over_once: View → query over the rows that stand by a rule, `$turns` by that of turns.
        first: Views that others read, in the order of creation.
        newest: Table → key of which the newest row is a part of a query, as `$table`.
        views: Name → query.
    """

    first: list[str]
    newest: dict[str, str]
    over_once: dict[str, str]
    views: dict[str, str]


_TEXTS = msgspec.toml.decode(files("streams.archive.views").joinpath("definitions.toml").read_bytes(), type=_Texts)
_LINEAGE = ", ".join(f'compaction."{name}" AS "{name}"' for name in TopicCompaction.__struct_fields__)
_PARTS = {table: _last(table, key) for table, key in _TEXTS.newest.items()} | {"lineage": _LINEAGE}
_ELSE: dict[str, str] = {
    **{name: _last(table, ", ".join(view.by)) for name, (table, view) in _OF_EVENTS.items() if view.keyed},
    **{name: Template(query).substitute(_PARTS) for name, query in _TEXTS.views.items()},
}
VIEW_NAMES = tuple(dict.fromkeys((*_TEXTS.first, *_OF_EVENTS)))
"""In the order of creation: some read others that stand before them."""


def definitions(marks: Mapping[str, Marks]) -> dict[str, str]:
    """Each view's query, in the order of creation. Marks: table → up to where its repeats are in `raw.repeats`."""
    once = {name: rule.sql(marks) for name, rule in ONCE.items()}
    over = {name: Template(query).substitute(once) for name, query in _TEXTS.over_once.items()}
    return {view: (over | _ELSE).get(view) or once[view] for view in VIEW_NAMES}
