"""An archive of an earlier release gets what this one reads."""

from __future__ import annotations

from contextlib import closing

from streams.archive.catalog import open_any_reader
from streams.archive.place import LakePaths
from streams.archive.views.published import added, present_columns
from streams.archive.writer import LakeWriter


def upgrade(paths: LakePaths) -> list[str]:
    """Add tables, columns and views; returns what the views have now and had not: `view`, or `view.column`.

    Raises:
        ConfigurationError: There is no archive, or it holds columns of other types.
        StoreUnavailable: It cannot be written.
    """
    with closing(open_any_reader(paths)) as con:
        before = present_columns(con)
    with closing(LakeWriter(paths)) as writer:
        return added(before, present_columns(writer.con))
