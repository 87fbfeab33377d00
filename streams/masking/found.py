"""Emails, phone numbers, payment cards and IBANs in a text, each replaced by its kind.

Patterns only find candidates; what is one is said by `phonenumbers` (Google's data) and `python-stdnum` (Luhn, IBAN).
The same text always gives the same result, and what was replaced is found no more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import phonenumbers
from stdnum import iban, luhn

from models.policy.archive import MaskedKind, MaskingPolicy

_EMAIL = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_CARD = re.compile(
    r"(?<![\w.,+-])(?:[3-6]\d{3}(?:\.\d{4}){3}|3[47]\d\d\.\d{6}\.\d{5}|\d(?:[ -]?\d){12,18})"
    r"(?![\w-])(?![.,]\d)"
)
"""Dots only between a card's usual groups: else many a decimal or date would be one."""
_IBAN = re.compile(r"(?<!\w)[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,30}(?!\w)")
_UNCHECKED_IBAN = re.compile(r"(?<!\w)[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]){11,30}(?!\w)")
_IBAN_CHARS = 15
"""The shortest has so many."""
_CARD_DIGITS = range(13, 20)
_GAP = re.compile("[ -]")
_MOST_DIGITS = 10_000
"""Of a text whose numbers are looked at one by one: 256 kB of them take half a minute."""
_NUMBER = re.compile(r"\+?\d(?:[ ().\-/]{0,3}\d){6,}")
CANDIDATE = re.compile(
    r"[@0-9](?:(?<=@)|(?<=[0-9])(?:[ ().\-/]{0,3}[0-9]){6}|(?<=[A-Za-z]{2}[0-9])[0-9][ -]?[A-Za-z0-9])"
)
"""What every text with anything to mask has: most have nothing, and are told by this alone. Digits are ASCII's."""


class Masker:
    """Replaces what a policy names: its kinds of data, and phone numbers of its regions.

    >>> mask = Masker(MaskingPolicy(phone_regions=("GB",))).mask
    >>> mask("ann@example.org or 020 7946 0018, card 4111 1111 1111 1111, not 4111 1111 1111 1112")
    '[email] or [phone], card [card], not 4111 1111 1111 1112'
    """

    def __init__(self, policy: MaskingPolicy) -> None:
        known: dict[MaskedKind, Callable[[str], str]] = {
            "email": _without_emails,
            "iban": _without_ibans,
            "card": _without_cards,
            "phone": self._without_phones,
        }
        # In this order: an IBAN or a card may look like a phone number.
        self._steps = [step for kind, step in known.items() if kind in policy.kinds]
        self._regions: tuple[str | None, ...] = policy.phone_regions or (None,)

    def mask(self, text: str) -> str:
        """The text without personal data; the very same object if it had none."""
        if CANDIDATE.search(text) is None:
            return text
        for step in self._steps:
            text = step(text)
        return text

    def _without_phones(self, text: str) -> str:
        if _is_full_of_digits(text):
            return _NUMBER.sub("[phone]", text)
        for region in self._regions:
            text = _replaced(text, _phones(text, region), "[phone]")
        return text


def _without_emails(text: str) -> str:
    return _EMAIL.sub("[email]", text) if "@" in text else text


def _without_cards(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        number = re.sub(r"\D", "", found[0])
        return "[card]" if len(number) in _CARD_DIGITS and luhn.is_valid(number) and len(set(number)) > 1 else found[0]

    return _CARD.sub(one, text)


def _is_full_of_digits(text: str) -> bool:
    return sum(map(str.isdecimal, text)) > _MOST_DIGITS


def _without_ibans(text: str) -> str:
    if _is_full_of_digits(text):
        return _UNCHECKED_IBAN.sub("[iban]", text)
    return _replaced(text, _ibans(text), "[iban]")


def _ibans(text: str) -> Iterator[tuple[int, int]]:
    """Words may follow an IBAN in groups, and stand before it: the longest part that begins at a word counts."""
    after = 0
    while (found := _IBAN.search(text, after)) is not None:
        start, end = found.span()
        gaps = [gap.start() for gap in _GAP.finditer(text, start, end)]
        after = gaps[0] if gaps else end  # where the next one may begin
        for last in [end, *(gap for gap in reversed(gaps) if gap >= start + _IBAN_CHARS)]:
            if iban.is_valid(text[start:last], check_country=False):
                yield start, last
                after = last
                break


def _phones(text: str, region: str | None) -> Iterator[tuple[int, int]]:
    if not any(map(str.isdecimal, text)):
        return
    for found in phonenumbers.PhoneNumberMatcher(text, region):
        yield found.start, found.end


def _replaced(text: str, places: Iterator[tuple[int, int]], by: str) -> str:
    parts, after = [], 0
    for start, end in places:
        parts += [text[after:start], by]
        after = end
    return "".join([*parts, text[after:]]) if after else text
