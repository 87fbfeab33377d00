"""`turntide archive dictionary`: every view of the archive, what it is for, and what each of its columns means."""

# ruff: noqa: S608 - views and columns are constants of this module

import re
import sys
from functools import cache
from importlib.resources import files
from inspect import cleandoc
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import typer
from msgspec import Struct

from jobs.cli import with_examples
from jobs.shared.output import OutputFormat, Printer
from models import events
from models.entities import REGISTRY
from models.errors import ConfigurationError
from models.events.fields import Meaning, Privacy, meaning_of
from streams.archive.schema import meanings
from streams.archive.views.definitions import definitions
from streams.archive.views.published import VIEWS_VERSION, columns_of_views
from streams.http import pages


class ViewMeaning(NamedTuple):
    """One view, in the words of the dictionary."""

    view: str
    purpose: str
    key: tuple[str, ...]
    """Columns whose values no two rows share; empty for a log, where the same may come again."""
    headline: str
    """SQL that shows what the view is good for; below a second on 20 million turns."""
    polars: str
    """The same in Python, through `lake`, a connection to the archive, into `frame`."""


POLARS_BEFORE = """\
import polars as pl
from streams.archive.catalog import open_reader, paths_of
from streams.settings import load_settings

lake = open_reader(paths_of(load_settings()))
"""
"""What stands before every example: the archive of the present settings, read-only."""


def _by(view: str, key: str, columns: str, purpose: str) -> ViewMeaning:
    """Rows by the first of the columns, with means of the others."""
    column, *besides = columns.split()
    figures = "".join(f", round(avg({name}), 3) AS mean_{name}" for name in besides)
    chained = "".join(f', pl.col("{name}").mean().alias("mean_{name}")' for name in besides)
    return ViewMeaning(
        view,
        purpose,
        tuple(key.split()),
        f"SELECT {column}, count(*) AS rows{figures} FROM {view} GROUP BY {column} ORDER BY rows DESC",
        f'frame = lake.sql("SELECT {", ".join((column, *besides))} FROM {view}").pl()'
        f'.group_by("{column}").agg(pl.len().alias("rows"){chained}).sort("rows", descending=True)',
    )


def _newest(view: str, key: str, columns: str, purpose: str) -> ViewMeaning:
    """The latest rows, by the first of the columns."""
    time, *others = columns.split()
    named = ", ".join((time, *others))
    return ViewMeaning(
        view,
        purpose,
        tuple(key.split()),
        f"SELECT {named} FROM {view} ORDER BY {time} DESC LIMIT 20",
        f'frame = lake.sql("SELECT {named} FROM {view}").pl().sort("{time}", descending=True).head(20)',
    )


class _View(Struct, forbid_unknown_fields=True):
    purpose: str
    columns: str
    key: str = ""
    newest: bool = False
    computed: dict[str, Meaning] = {}


_VIEWS = msgspec.toml.decode(files("jobs.archive").joinpath("views.toml").read_bytes(), type=dict[str, _View])
VIEW_MEANINGS: dict[str, ViewMeaning] = {
    name: (_newest if view.newest else _by)(name, view.key, view.columns, view.purpose) for name, view in _VIEWS.items()
}
COMPUTED = {name: view.computed for name, view in _VIEWS.items()}
"""View → meaning of each column that it computes."""
VIEW_MEANINGS |= {
    name: _newest(name, " ".join(view.by), " ".join(("timestamp", *view.by)), cleandoc(str(emits.event.__doc__)))
    for emits in REGISTRY.emits.values()
    for name, view in emits.views.items()
    if name not in VIEW_MEANINGS
}
"""View → what it is for; one that `views.toml` does not name says what its event says."""


class ColumnMeaning(NamedTuple):
    """One column of one view."""

    name: str
    type: str
    """As DuckDB spells it."""
    unit: str
    """Empty where it has none: names, words, truth values."""
    meaning: str
    privacy: Privacy


_PARTS: dict[str, tuple[type[Struct], ...]] = {
    "topic_compactions": (events.TopicCompaction,),
    "alert_labels": (events.AlertLabelled, events.AlertChanged, events.Escalation),
    "alerts": (events.Escalation,),
    "project_memories": (events.ProjectMemory,),
    "project_relationships": (events.Relationship,),
    "project_memory_history": (events.MemoryRevision, events.ProjectMemory),
    "project_episodes": (events.ProjectEpisode,),
    "project_chunks": (events.ConversationChunk,),
    "project_conversations": (events.ProjectConversation,),
    "project_pending": (events.PendingFact,),
}
"""Views that take structures apart: their fields come before columns of a table."""
_SOURCE = re.compile(r"\b(raw|v1)\.(\w+)")
_UNIT_OF_TYPE = {
    "TIMESTAMP WITH TIME ZONE": "UTC time",
    "DATE": "UTC day",
    **dict.fromkeys(("BIGINT", "HUGEINT", "INTEGER"), "count"),
}


def columns_of(view: str) -> list[ColumnMeaning]:
    """Every column of a view, in its order.

    Raises:
        KeyError: A column has no meaning: it is neither of a table that the view reads, nor computed and explained.
    """
    known = _known(view)
    return [
        ColumnMeaning(name, kind, _unit(known[name], kind), known[name].description, known[name].privacy)
        for name, kind in columns_of_views()[view].items()
    ]


def _unit(meaning: Meaning, kind: str) -> str:
    """Of a column's numbers: what its field says, else counts and times by their type; ids have none."""
    return meaning.unit or ("" if meaning.names else _UNIT_OF_TYPE.get(kind, ""))


@cache
def _known(view: str) -> dict[str, Meaning]:
    """Every name that a view may have a column of; of tables that have the same the first that it reads."""
    known: dict[str, Meaning] = {}
    for schema, source in _SOURCE.findall(definitions({})[view]):
        known = (meanings().get(source, {}) if schema == "raw" else _known(source)) | known
    for part in reversed(_PARTS.get(view, ())):
        known |= meaning_of(part)
    return known | COMPUTED.get(view, {})


# --- the command

_BEFORE = (
    "Each view stands in the schema of its version and, as the present version, without a schema. "
    "`SELECT * FROM archive_version` says which version an archive has. Columns are added to a version, never taken."
)
_PRIVACY = {
    "content": "words of people, or made of their words",
    "identifier": "names a session, a user, or what is tied to one",
    "behaviour": "how somebody behaved or was judged, in numbers and fixed words",
    "operational": "how the system ran",
}


DictionaryFormat = Literal["table", "json", "markdown", "html"]
"""Forms of the dictionary."""


@with_examples(
    "turntide archive dictionary",
    "turntide archive dictionary sessions",
    "turntide archive dictionary --output html > dictionary.html",
)
def dictionary(
    view: Annotated[str | None, typer.Argument(help="View to explain. Default: all.")] = None,
    *,
    output: Annotated[
        DictionaryFormat, typer.Option("--output", help="Format; html is one page with a search.")
    ] = "table",
) -> None:
    """Explain the archive's views and columns: purpose, key, first query, types, units, privacy."""
    views = entries(view)
    match output:
        case "markdown" | "html":
            sys.stdout.write(document(views, output))
        case "json":
            Printer(OutputFormat.JSON).record({"polars_before": POLARS_BEFORE, "views": views})
        case "table":
            _tables(views, with_columns=view is not None)


def entries(view: str | None) -> list[dict[str, Any]]:
    """Views as plain fields with their columns; one view, or all.

    Raises:
        ConfigurationError: There is no such view.
    """
    if view is not None and view not in VIEW_MEANINGS:
        raise ConfigurationError(f"no view {view!r}: the views are {', '.join(VIEW_MEANINGS)}")
    return [
        {
            "view": name,
            "version": VIEWS_VERSION,
            "purpose": meaning.purpose,
            "key": list(meaning.key),
            "query": meaning.headline,
            "polars": meaning.polars,
            "columns": [{**column._asdict(), "privacy": column.privacy.value} for column in columns_of(name)],
        }
        for name, meaning in VIEW_MEANINGS.items()
        if view in (None, name)
    ]


def document(views: list[dict[str, Any]], form: DictionaryFormat) -> str:
    """One page: Markdown for repositories, or HTML with a search over names and meanings."""
    extension, scripts = ("md", []) if form == "markdown" else ("html", ["jobs/archive/dictionary.js"])
    return pages.render(
        f"jobs/archive/dictionary.{extension}.j2",
        scripts=[pages.source(script) for script in scripts],
        title="Views of the archive",
        before=_BEFORE,
        privacy=_PRIVACY,
        polars_before=POLARS_BEFORE,
        heads=("column", "type", "unit", "meaning", "privacy"),
        views=views,
    )


def _tables(views: list[dict[str, Any]], *, with_columns: bool) -> None:
    printed = Printer(OutputFormat.TABLE)
    if not with_columns:
        printed.rows("views", [{"view": v["view"], "key": ", ".join(v["key"]), "purpose": v["purpose"]} for v in views])
        printed.message("`turntide archive dictionary VIEW` shows the columns of one")
        return
    for entry in views:
        described = {name: entry[name] for name in ("view", "purpose", "query", "polars")}
        printed.record(described | {"key": ", ".join(entry["key"])})
        printed.rows("columns", entry["columns"])
        printed.message(f"before the example in Polars:\n{POLARS_BEFORE}")
