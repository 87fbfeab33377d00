"""Wrapper of the apps' keys, by the settings: a master key, or Vault."""

from models.errors import ConfigurationError
from streams.encryption.master_key import MasterKey
from streams.ports import KeyWrapper
from streams.settings.encryption import EncryptionSettings


def wrapper_of(settings: EncryptionSettings) -> KeyWrapper:
    """What wraps the keys.

    Raises:
        ConfigurationError: Nothing is named, or the extra is missing.
    """
    if settings.vault_url is not None:
        if settings.vault_token is None:
            raise ConfigurationError("encryption.vault_url is set: set encryption.vault_token too")
        from streams.encryption.vault import VaultTransit  # noqa: PLC0415 - a client of HTTP, which few need

        return VaultTransit(settings.vault_url, settings.vault_token, settings.vault_key)
    if settings.master_key is None:
        raise ConfigurationError(
            "encryption.keyring is set: set encryption.master_key (`openssl rand -base64 32`) or encryption.vault_url"
        )
    named = (settings.master_key, settings.previous_master_key)
    try:
        return MasterKey([key.get_secret_value() for key in named if key is not None])
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "encryption needs the package `cryptography`: install `turntide[encryption]`"
        ) from error
