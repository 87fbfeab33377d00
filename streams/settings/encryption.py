"""Settings of encryption at rest."""

from pathlib import Path

from pydantic import BaseModel, Field, SecretStr


class EncryptionSettings(BaseModel):
    """Encryption at rest with a key per app (extra `encryption`); off unless a keyring is named.

    The keyring holds the apps' data keys, each wrapped by the master key or by Vault.
    """

    keyring: Path | None = Field(
        None,
        description="File with the wrapped keys, made by `turntide ops keys init`; none: nothing is encrypted. All "
        "roles share it. Keep it, and copies of it, out of what is backed up: erasing a key must erase all of it.",
    )
    master_key: SecretStr | None = Field(
        None, description="Wraps the keys: 32 bytes in base64 (openssl rand -base64 32)."
    )
    previous_master_key: SecretStr | None = Field(
        None, description="Also unwraps, until `turntide ops keys rewrap` has run."
    )
    vault_url: str | None = Field(
        None, description="HashiCorp Vault whose transit engine wraps instead, e.g. https://vault:8200."
    )
    vault_token: SecretStr | None = Field(None, description="Token for Vault.")
    vault_key: str = Field("turntide", description="Name of the key in Vault's transit engine.")
    apps: tuple[str, ...] = Field((), description="Encrypt only these apps; empty: all.")
