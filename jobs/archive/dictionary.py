"""`turntide archive dictionary`: every view of the archive, what it is for, and what each of its columns means."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from jobs.archive.view_meanings import POLARS_BEFORE, VIEW_MEANINGS, columns_of
from jobs.cli import with_examples
from jobs.shared.output import OutputFormat, Printer
from models.errors import ConfigurationError
from streams.archive.views.published import VIEWS_VERSION
from streams.http import pages

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


class DictionaryFormat(StrEnum):
    """Forms of the dictionary."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


@with_examples(
    "turntide archive dictionary",
    "turntide archive dictionary sessions",
    "turntide archive dictionary --output html > dictionary.html",
)
def dictionary(
    view: Annotated[str | None, typer.Argument(help="One view alone; none: all of them.")] = None,
    *,
    output: Annotated[
        DictionaryFormat, typer.Option("--output", help="How it is printed; html is one page with a search.")
    ] = DictionaryFormat.TABLE,
) -> None:
    """Say what the archive's views and columns mean: purpose, key, first query, types, units, privacy."""
    views = entries(view)
    match output:
        case DictionaryFormat.MARKDOWN | DictionaryFormat.HTML:
            sys.stdout.write(document(views, output))
        case DictionaryFormat.JSON:
            Printer(OutputFormat.JSON).record({"polars_before": POLARS_BEFORE, "views": views})
        case DictionaryFormat.TABLE:
            _tables(views, with_columns=view is not None)


def entries(view: str | None) -> list[dict[str, Any]]:
    """Views as plain fields with their columns; one view, or all.

    Raises:
        ConfigurationError: There is no such view.
    """
    if view is not None and view not in VIEW_MEANINGS:
        raise ConfigurationError(f"no view {view!r}: there are {', '.join(VIEW_MEANINGS)}")
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
    extension, scripts = ("md", []) if form is DictionaryFormat.MARKDOWN else ("html", ["jobs/archive/dictionary.js"])
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
