"""Files of the archive on S3, or on a server that speaks it."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import SecretStr

from models.errors import ConfigurationError
from streams.archive.extensions import literal
from streams.settings.archive import ArchiveSettings

S3 = "s3://"
_SECRET = "turntide_files"  # noqa: S105 - its name, not its value


class S3Access(NamedTuple):
    """How a bucket is reached."""

    endpoint: str | None = None
    """`host[:port]`; None: that of AWS."""
    region: str | None = None
    key_id: str | None = None
    secret: SecretStr | None = None
    session_token: SecretStr | None = None
    url_style: str = "vhost"
    tls: bool = True

    def secret_for(self, data: str) -> str:
        """Statement that makes the keys known to a connection, for paths below `data` alone; DuckDB redacts them."""
        texts = {
            "SCOPE": data,
            "URL_STYLE": self.url_style,
            "ENDPOINT": self.endpoint,
            "REGION": self.region,
            "KEY_ID": self.key_id,
            "SECRET": None if self.secret is None else self.secret.get_secret_value(),
            "SESSION_TOKEN": None if self.session_token is None else self.session_token.get_secret_value(),
        }
        terms = [f"{name} {literal(text)}" for name, text in texts.items() if text is not None]
        return f"CREATE OR REPLACE SECRET {_SECRET} (TYPE s3, {', '.join(terms)}, USE_SSL {str(self.tls).lower()})"


def s3_access_of(archive: ArchiveSettings) -> S3Access:
    """How the settings say that the bucket is reached.

    Raises:
        ConfigurationError: A key without its secret, or the other way round.
    """
    if (archive.s3_key_id is None) != (archive.s3_secret is None):
        raise ConfigurationError("archive.s3_key_id and archive.s3_secret belong together: set both, or none")
    return S3Access(
        endpoint=archive.s3_endpoint,
        region=archive.s3_region,
        key_id=archive.s3_key_id,
        secret=archive.s3_secret,
        session_token=archive.s3_session_token,
        url_style=archive.s3_url_style,
        tls=archive.s3_tls,
    )
