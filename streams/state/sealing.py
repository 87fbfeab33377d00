"""Parts of state as changelogs and local stores have them where content is encrypted: whole, under their app's key.

A part is opened under its own name alone. Folds, and tables in memory, have plain parts.
"""

from functools import lru_cache

from models.entities import KINDS
from models.errors import RecoveryFailed
from models.events.base import name_of_part
from streams.encryption.keyring import NOBODY, Sealer, key_of_id
from streams.encryption.tokens import ID_BYTES, IV_BYTES, STATE_MARK

_KINDS = frozenset(kind.name for kind in KINDS)
_BEFORE_PART = b"\x1f"
"""`streams.state.changelog.SEPARATOR`."""
_MARKED = len(STATE_MARK)
_OVERHEAD_BYTES = _MARKED + ID_BYTES + IV_BYTES


def sealed_part(sealer: Sealer, key: bytes, value: bytes) -> bytes:
    """A part as it is kept, by its changelog key; as it is where its app is not encrypted."""
    secret = sealer.key(_app_of(key.partition(_BEFORE_PART)[0]))
    return value if secret is None else STATE_MARK + secret.seal(value, key)


def is_sealed(kept: bytes) -> bool:
    """Whether a part is kept under a key."""
    return kept.startswith(STATE_MARK)


def part_size_bytes(kept: bytes) -> int:
    """Size of the part itself."""
    return len(kept) - (_OVERHEAD_BYTES if is_sealed(kept) else 0)


def opened_part(key: bytes, kept: bytes) -> bytes | None:
    """The part again; None: its key was erased.

    Raises:
        ConfigurationError: The key is missing.
        RecoveryFailed: It was not sealed under this name, or was changed.
    """
    if not is_sealed(kept):
        return kept
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - extra `encryption`

    sealed = kept[_MARKED:]
    if (secret := key_of_id(sealed[:ID_BYTES])) is None:
        return None
    try:
        return secret.opened(sealed, key)
    except InvalidTag:
        raise RecoveryFailed(
            "a part of state was encrypted under another name or was changed since: look who else writes to this "
            "changelog; then drop the state topic and replay the turns (`turntide ops reset`)"
        ) from None


@lru_cache(maxsize=65_536)
def _app_of(entity: bytes) -> str:
    """Whose an entity is, by its key; a partition's own is nobody's."""
    kind, _, names = entity.decode().partition(":")
    return name_of_part(names.partition("/")[0]) if kind in _KINDS else NOBODY
