"""Purpose of each view of the archive: its key, the query that one asks first, and the same in Polars."""

# ruff: noqa: S608 - views and columns are constants of this module

from __future__ import annotations

from importlib.resources import files
from inspect import cleandoc
from typing import NamedTuple

import msgspec
from msgspec import Struct

from models.entities import REGISTRY
from models.events.fields import Meaning


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
