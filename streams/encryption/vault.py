"""`streams.ports.KeyWrapper` by the transit engine of HashiCorp Vault: the master key never leaves it."""

from base64 import b64decode, b64encode
from typing import Any

import httpx
from pydantic import SecretStr

from models.errors import ConfigurationError

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
