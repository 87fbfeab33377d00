"""The port of wrapped data keys, on the master key and on Vault's transit engine as its HTTP API describes it."""

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import SecretStr

from models.errors import ConfigurationError
from streams.encryption.wrapping import MasterKey, VaultTransit
from streams.ports import KeyWrapper
from tests.support.http_server import Request, answering

TOKEN = "vault-token-of-a-test"  # noqa: S105 - of a stand-in
DATA_KEY = bytes(range(64))


class Transit:
    """`POST /v1/transit/encrypt|decrypt/NAME` with a token, as Vault answers it."""

    def __init__(self) -> None:
        self._key = AESGCM(os.urandom(32))

    def answer(self, request: Request) -> None:
        """One request."""
        said = json.loads(request.body())
        if request.headers["X-Vault-Token"] != TOKEN:
            return request.reply(403, b'{"errors": ["permission denied"]}')
        *_, engine, act, name = request.path.split("/")
        bound = b64decode(said.get("associated_data", ""))
        try:
            if (engine, act, name) == ("transit", "encrypt", "turntide"):
                nonce = os.urandom(12)
                held = nonce + self._key.encrypt(nonce, b64decode(said["plaintext"]), bound)
                data = {"ciphertext": f"vault:v1:{b64encode(held).decode()}"}
            else:
                held = b64decode(said["ciphertext"].removeprefix("vault:v1:"))
                data = {"plaintext": b64encode(self._key.decrypt(held[:12], held[12:], bound)).decode()}
        except Exception:  # noqa: BLE001 - whatever cannot be opened is a bad request
            return request.reply(400, b'{"errors": ["cipher: message authentication failed"]}')
        return request.reply(200, json.dumps({"data": data}).encode())


@pytest.fixture
def vault() -> Iterator[str]:
    """Where a stand-in answers."""
    with answering(Transit().answer) as url:
        yield url


@pytest.fixture(params=["master key", "vault"])
def wrapper(request: pytest.FixtureRequest, vault: str) -> KeyWrapper:
    """One of each kind."""
    if request.param == "vault":
        return VaultTransit(f"{vault}/", SecretStr(TOKEN), "turntide")
    return MasterKey([b64encode(os.urandom(32)).decode()])


def test_a_key_comes_back_for_its_app_alone(wrapper: KeyWrapper) -> None:
    """Wrapped, it shows nothing of itself, and is another text each time."""
    wrapped = [wrapper.wrap(DATA_KEY, "shop") for _ in range(2)]

    assert [wrapper.unwrap(each, "shop") for each in wrapped] == [DATA_KEY] * 2
    assert len(set(wrapped)) == 2
    assert not any(b64encode(DATA_KEY).decode()[:20] in each for each in wrapped)
    with pytest.raises(ConfigurationError):
        wrapper.unwrap(wrapped[0], "bank")


@pytest.mark.parametrize(("token", "why"), [("wrong", "status 403"), (TOKEN, "ConnectError")])
def test_vault_that_refuses_or_is_away_is_told(vault: str, token: str, why: str) -> None:
    """By what it said, never with the token or the key."""
    url = vault if why == "status 403" else "http://127.0.0.1:1"

    with pytest.raises(ConfigurationError, match=why) as refused:
        VaultTransit(url, SecretStr(token), "turntide").wrap(DATA_KEY, "shop")
    assert token not in str(refused.value).replace("vault_token", "")
