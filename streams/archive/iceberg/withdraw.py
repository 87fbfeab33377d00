"""Withdrawing from the Iceberg tables what has gone from the archive: the last step of an erasure and of retention."""

from datetime import UTC, datetime

from models.events.erase import ErasedStore
from streams.archive.catalog import reading
from streams.archive.place import is_published, paths_of
from streams.settings import Settings


def withdraw(settings: Settings, *, now: datetime | None = None) -> list[ErasedStore]:
    """Publish, so that what the archive has removed leaves every file of the Iceberg tables too.

    Reads beside a writer. Nothing is done, and nothing needed, where the archive has never been published.

    Raises:
        StoreUnavailable: Catalog or files do not serve: call again.
        ConfigurationError: A tag keeps a snapshot with such rows, or the tables are of another archive.
    """
    if not is_published(settings):
        return []
    from streams.archive.iceberg.catalog import opened  # noqa: PLC0415 - an extra: roles that publish nothing do without
    from streams.archive.iceberg.publish import publish  # noqa: PLC0415

    now = now or datetime.now(UTC)
    with reading(paths_of(settings)) as con, opened(settings) as catalog:
        done = publish(con, catalog, settings.iceberg, now=now)
        left = {each.table: each for each in publish(con, catalog, settings.iceberg, now=now, dry_run=True)}
    return [
        ErasedStore(
            store=f"iceberg {each.table}",
            looked_at=each.rows + each.rows_deleted,
            removed=each.rows_deleted,
            remaining=left[each.table].rows_deleted,
        )
        for each in done
    ]
