"""Opening the catalog that the Iceberg tables are in: SQLite beside them by default, a database or a REST server."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ForbiddenError, NoSuchNamespaceError, UnauthorizedError

from models.errors import ConfigurationError, StoreUnavailable
from streams.archive.place import IcebergPlace, place_of
from streams.settings import Settings

_NAME = "turntide"
"""What the catalog calls itself in its own database."""
_FILE_IO = "pyiceberg.io.pyarrow.PyArrowFileIO"
_THEIRS = frozenset({"pyiceberg", "sqlalchemy", "requests", "pyarrow"})
"""Packages whose errors are failures of catalog or files."""


@contextmanager
def opened(settings: Settings) -> Iterator[Catalog]:
    """The catalog for the length of a block, in which failures of catalog and files become ours.

    Raises:
        ConfigurationError: It refuses the token or has no such namespace.
        StoreUnavailable: It, or the place of the files, does not serve.
    """
    place = place_of(settings)
    with _failing_as_ours(place):
        catalog = _open(settings, place)
        try:
            yield catalog
        finally:
            catalog.close()


def _open(settings: Settings, place: IcebergPlace) -> Catalog:
    asked = {name: value.get_secret_value() for name, value in settings.iceberg.properties.items()}
    properties = {"py-io-impl": _FILE_IO, "uri": place.uri, **asked}
    if place.warehouse:
        properties["warehouse"] = place.warehouse
    if settings.iceberg.token is not None:
        properties["token"] = settings.iceberg.token.get_secret_value()
    if place.file is not None:
        place.file.parent.mkdir(parents=True, exist_ok=True)
    return RestCatalog(_NAME, **properties) if place.is_rest else SqlCatalog(_NAME, **properties)


@contextmanager
def _failing_as_ours(place: IcebergPlace) -> Iterator[None]:
    where = f"the Iceberg catalog {place.shown}"
    try:
        yield
    except (UnauthorizedError, ForbiddenError):
        raise ConfigurationError(f"{where} denies access: see TURNTIDE_ICEBERG__TOKEN, or its `credential`") from None
    except NoSuchNamespaceError:
        raise ConfigurationError(f"{where} has no such namespace: check TURNTIDE_ICEBERG__NAMESPACE") from None
    except Exception as error:
        # Their messages may quote statements and values.
        if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _THEIRS:
            raise StoreUnavailable(
                f"{where} or its files in {place.warehouse or 'its warehouse'} are unavailable "
                f"({type(error).__name__}): committed data is kept, run `turntide archive publish` again"
            ) from None
        raise
