"""Settings with a keyring of a test's own."""

from base64 import b64encode
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from streams.encryption.keyring import Keyring
from streams.encryption.wrapping import wrapper_of
from streams.settings import EncryptionSettings

MASTER_KEY = b64encode(bytes(range(32))).decode()


def encrypted(folder: Path, **more: Any) -> EncryptionSettings:
    """Encryption with a keyring that is made in the folder."""
    settings = EncryptionSettings(keyring=folder / "keys.json", master_key=SecretStr(MASTER_KEY), **more)
    assert settings.keyring is not None
    Keyring.init(settings.keyring, wrapper_of(settings))
    return settings


def environment(settings: EncryptionSettings) -> dict[str, str]:
    """The same for a child process."""
    return {"TURNTIDE_ENCRYPTION__KEYRING": str(settings.keyring), "TURNTIDE_ENCRYPTION__MASTER_KEY": MASTER_KEY}
