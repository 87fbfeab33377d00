"""`streams.ports.KeyWrapper` by a master key of the settings: AES-256-GCM."""

import os
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Sequence

from models.errors import ConfigurationError

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
            "encryption.master_key is not the one that wrapped the keys of encryption.keyring: set the right one, or "
            "name it encryption.previous_master_key and run `turntide ops keys rewrap`"
        )


def _decoded(key: str) -> bytes:
    try:
        decoded = b64decode(key, validate=True)
    except NoBase64:
        decoded = b""
    if len(decoded) != _MASTER_BYTES:
        raise ConfigurationError(
            "encryption.master_key must be 32 bytes in base64: `openssl rand -base64 32` makes one; keep it safe"
        )
    return decoded
