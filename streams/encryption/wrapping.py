"""Wrapper of the apps' keys, by the settings: a master key (AES-256-GCM), or Vault's transit engine."""

import os
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Sequence
from typing import Any

from pydantic import SecretStr

from models.errors import ConfigurationError
from streams.ports import KeyWrapper
from streams.settings import EncryptionSettings

_WITHIN_S = 10.0


class VaultTransit:
    """Asks Vault to wrap and unwrap; the app is associated data.

    Args:
        url: Base address of Vault.
        token: That may encrypt and decrypt with the key.
        key: Name of an AES-256-GCM key of the engine at `transit/`.
    """

    def __init__(self, url: str, token: SecretStr, key: str) -> None:
        self._place, self._token, self._key = f"{url.rstrip('/')}/v1/transit", token, key

    def wrap(self, secret: bytes, app_id: str) -> str:
        """A data key as it is kept: `vault:v1:…`."""
        return str(self._asked("encrypt", "ciphertext", app_id, plaintext=b64encode(secret).decode()))

    def unwrap(self, wrapped: str, app_id: str) -> bytes:
        """The data key again."""
        return b64decode(self._asked("decrypt", "plaintext", app_id, ciphertext=wrapped))

    def _asked(self, act: str, wanted: str, app_id: str, **said: str) -> Any:
        import httpx  # noqa: PLC0415 - a client of HTTP, which few need

        said["associated_data"] = b64encode(app_id.encode()).decode()
        try:
            answer = httpx.post(
                f"{self._place}/{act}/{self._key}",
                json=said,
                headers={"X-Vault-Token": self._token.get_secret_value()},
                timeout=_WITHIN_S,
            )
            answer.raise_for_status()
            return answer.json()["data"][wanted]
        except (httpx.HTTPError, KeyError, ValueError) as error:
            why = (
                f"status {error.response.status_code}"
                if isinstance(error, httpx.HTTPStatusError)
                else type(error).__name__
            )
            raise ConfigurationError(
                f"Vault does not {act} with the transit key {self._key} ({why}): is encryption.vault_url right, is "
                "Vault unsealed, and may encryption.vault_token use the key?"
            ) from None


_MASTER_BYTES = 32
_NONCE_BYTES = 12


class MasterKey:
    """Wraps with the first key, unwraps with any.

    Args:
        keys: Each 32 bytes in base64.

    Raises:
        ConfigurationError: One is not.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - extra `encryption`

        self._keys = [AESGCM(_decoded(key)) for key in keys]

    def wrap(self, secret: bytes, app_id: str) -> str:
        """A data key as it is kept."""
        nonce = os.urandom(_NONCE_BYTES)
        return b64encode(nonce + self._keys[0].encrypt(nonce, secret, app_id.encode())).decode()

    def unwrap(self, wrapped: str, app_id: str) -> bytes:
        """The data key again.

        Raises:
            ConfigurationError: None of the master keys wrapped it, or it is another app's.
        """
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - likewise

        held = b64decode(wrapped)
        for key in self._keys:
            try:
                return key.decrypt(held[:_NONCE_BYTES], held[_NONCE_BYTES:], app_id.encode())
            except InvalidTag:
                continue
        raise ConfigurationError(
            "encryption.master_key did not wrap the keys of encryption.keyring: set the right master key, or set that "
            "one as encryption.previous_master_key and run `turntide ops keys rewrap`"
        )


def _decoded(key: str) -> bytes:
    try:
        decoded = b64decode(key, validate=True)
    except NoBase64:
        decoded = b""
    if len(decoded) != _MASTER_BYTES:
        raise ConfigurationError(
            "encryption.master_key must be 32 bytes in base64: `openssl rand -base64 32` creates one; store it safely"
        )
    return decoded


def wrapper_of(settings: EncryptionSettings) -> KeyWrapper:
    """What wraps the keys.

    Raises:
        ConfigurationError: Nothing is named, or the extra is missing.
    """
    if settings.vault_url is not None:
        if settings.vault_token is None:
            raise ConfigurationError("encryption.vault_url is set: set encryption.vault_token too")
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
