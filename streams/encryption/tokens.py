"""Sealed texts, bytes and parts: AES-SIV under an app's data key, with the key's id before it.

```
sealed bytes   key's id (8) · salt (8, where there is one) · synthetic IV (16) · ciphertext
a text         "sealed:1." and its base64 (URL-safe, no padding)      in records, payloads and columns
bytes in JSON  base64 of such a text, as JSON has bytes
a part         STATE_MARK and the sealed bytes, without a salt        in changelogs and local stores
```

The same text at the same place gives the same bytes, so that a repeat after a crash is one. The salt is made of the
whole record: equal texts of different records look different. Associated data binds app, place and salt.
"""

from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b

MARK = "sealed:1."
"""Nine characters: base64 of what begins with them begins with base64 of them."""
MARK_BASE64 = b64encode(MARK.encode()).decode()
STATE_MARK = b"\xc1sealed1"
"""No JSON begins so, and no MessagePack."""
ID_BYTES = SALT_BYTES = 8
IV_BYTES = 16
_OF_TEXT = b"text"


class DataKey:
    """One data key of an app.

    Args:
        key_id: 8 bytes.
        app_id: Whose; empty: of what belongs to no app.
        secret: 64 bytes: AES-256 twice.
    """

    def __init__(self, key_id: bytes, app_id: str, secret: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV  # noqa: PLC0415 - extra `encryption`

        self.id, self.app_id = key_id, app_id
        self._app = b"app:" + app_id.encode()
        self._siv = AESSIV(secret)
        self._salting = blake2b(secret, digest_size=32, person=b"turntide salt").digest()

    def salt(self, record: bytes) -> bytes:
        """Of the texts of a record; says nothing about it without the key."""
        return blake2b(record, key=self._salting, digest_size=SALT_BYTES).digest()

    def seal(self, plain: bytes, place: bytes, salt: bytes = b"") -> bytes:
        """Sealed bytes that are opened at this place alone."""
        return self.id + salt + self._siv.encrypt(plain, [place, self._app, salt])

    def opened(self, sealed: bytes, place: bytes, *, salted: bool = False) -> bytes:
        """What was sealed there.

        Raises:
            cryptography.exceptions.InvalidTag: Not with this key, or not there.
        """
        begin = ID_BYTES + salted * SALT_BYTES
        return self._siv.decrypt(sealed[begin:], [place, self._app, sealed[ID_BYTES:begin]])

    def seal_text(self, text: str, salt: bytes) -> str:
        """A text of a record as it is kept."""
        return MARK + urlsafe_b64encode(self.seal(text.encode(), _OF_TEXT, salt)).decode().rstrip("=")

    def opened_text(self, sealed: bytes) -> str:
        """The text again; likewise."""
        return self.opened(sealed, _OF_TEXT, salted=True).decode()


def sealed_bytes(token: str) -> bytes:
    """What a sealed text holds.

    Raises:
        ValueError: It is none.
    """
    body = token.removeprefix(MARK)
    return urlsafe_b64decode(body + "=" * (-len(body) % 4))


def plain_size_bytes(text: str) -> int:
    """UTF-8 bytes of a text, sealed or not."""
    if not text.startswith(MARK):
        return len(text) if text.isascii() else len(text.encode())
    return (len(text) - len(MARK)) * 3 // 4 - ID_BYTES - SALT_BYTES - IV_BYTES
