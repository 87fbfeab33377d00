"""Where the archive lives, from settings: what is wrong is said, and a password is nowhere shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.errors import ConfigurationError
from streams.archive.place import paths_of
from streams.settings import load_settings
from tests.support.data_files import data_file


def test_by_default_it_is_in_the_data_directory(tmp_path: Path) -> None:
    """SQLite beside a folder."""
    found = paths_of(load_settings(data_dir=tmp_path))

    assert (found.catalog, found.data) == (tmp_path / "archive" / "catalog.sqlite", f"{tmp_path}/archive/data/")
    assert (found.postgres, found.is_folder, found.shown) == (None, True, str(found.catalog))


def test_postgres_and_s3(tmp_path: Path) -> None:
    """Each word as its own; the password goes by a secret and stands in nothing that is shown."""
    archive = {
        "catalog": "postgresql://o'n%20e@[::1]:5433/a%27b?sslmode=require",
        "catalog_password": "it's",
        "data_path": "s3://bucket/prefix",
        "s3_key_id": "key",
        "s3_secret": "pass'word",
    }
    settings = load_settings(data_dir=tmp_path, archive=archive)
    found = paths_of(settings)

    assert found.postgres is not None
    assert found.postgres.connection == (
        r"host='::1' port='5433' user='o\'n e' dbname='a\'b' sslmode='require' connect_timeout='10'"
    )
    assert found.postgres.secret.endswith("(TYPE postgres, PASSWORD 'it''s')")
    assert (found.shown, found.data, found.is_folder) == ("postgresql://::1/a'b", "s3://bucket/prefix/", False)
    assert "SCOPE 's3://bucket/prefix/'" in found.s3.secret_for(found.data)
    assert "SECRET 'pass''word'" in found.s3.secret_for(found.data)
    assert not [word for word in ("it's", "pass'word") if word in f"{found!r} {settings!r}"]


@pytest.mark.parametrize(
    ("archive", "message"),
    data_file("archive_settings")["wrong"],
)
def test_what_is_wrong_is_said(archive: dict[str, str], message: str) -> None:
    """At the start, without what may be a password."""
    with pytest.raises(ConfigurationError) as said:
        paths_of(load_settings(archive=archive))

    assert message in str(said.value)
    assert "sesame" not in str(said.value)
