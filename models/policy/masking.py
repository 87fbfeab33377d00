"""Rules of masking people's words where they are kept for long. Part of `models.policy`.

None of it changes what the stream does: `models.policy.digest` leaves this section out.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from models.policy.stream import PolicySection

MaskedKind = Literal["email", "phone", "card", "iban"]


class MaskingPolicy(PolicySection, frozen=True, kw_only=True):
    """Which personal data is replaced by its kind, `[email]`, before words are kept. Off where no place is named."""

    at_archive: bool = False
    """In the archive: all words that it would keep. Of refused records only the reason is kept then."""
    at_index: bool = False
    """In the index: what is embedded, found and shown. Earlier points stay until `turntide ops reset index`."""
    kinds: tuple[MaskedKind, ...] = ("email", "phone", "card", "iban")
    phone_regions: tuple[Annotated[str, Meta(pattern="^[A-Z]{2}$")], ...] = ()
    """Countries (ISO 3166) whose numbers are known without +; others need their country code."""
