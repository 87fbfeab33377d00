"""The name of a policy's content: two that bear the same version by mistake are told apart."""

from hashlib import sha256
from typing import Final

import msgspec

from models.policy import Policy

DIGEST_DIGITS: Final = 12
_MOST_REMEMBERED: Final = 64
_OFFLINE: Final = frozenset({"archive", "masking", "notify", "prompts"})
"""Sections that change nothing of what the stream does, unless secrets are kept."""
_remembered: dict[int, tuple[Policy, str]] = {}
"""By identity: a policy holds its model's weights and is not hashable. It is kept, so that its id stays its own."""


def policy_digest(policy: Policy) -> str:
    """First 12 hexadecimal digits of the SHA-256 of the live policy as JSON, the model's weights included.

    >>> policy_digest(Policy()) == policy_digest(Policy()) != policy_digest(Policy(version="2"))
    True
    """
    known = _remembered.get(id(policy))
    if known is not None:
        return known[1]
    if len(_remembered) >= _MOST_REMEMBERED:
        _remembered.clear()
    digest = sha256(live_policy(policy)).hexdigest()[:DIGEST_DIGITS]
    _remembered[id(policy)] = (policy, digest)
    return digest


def live_policy(policy: Policy) -> bytes:
    """The policy as JSON without what changes nothing of what the stream does; its digest is that of these bytes.

    >>> b'"archive"' in live_policy(Policy())
    False
    """
    sections = msgspec.structs.asdict(policy).items()
    live: dict[str, object] = {name: section for name, section in sections if name not in _OFFLINE}
    if not policy.masking.secrets:
        live["masking"] = {"secrets": False}
    return msgspec.json.encode(live)
