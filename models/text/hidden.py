"""Hidden text: invisible characters in words, messages written in them, and overridden direction.

Before it, one cheap look at a text, by which it is suspected of a disguise or not.
"""

import re

from msgspec import Struct

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_PLAIN = b"a !"
_NONE: frozenset[str] = frozenset()


class Look(Struct, frozen=True, gc=False):
    """A text and what is seen of it at once."""

    text: str
    shape: bytes
    """As `look_at` says."""
    odd: frozenset[str] = _NONE
    """The distinct characters, if any is beyond ASCII."""

    @property
    def is_plain(self) -> bool:
        """Whether there are only letters and plain punctuation."""
        return not self.odd and not self.shape.translate(None, _PLAIN) and b"!a" not in self.shape


def _class_of(code: int) -> bytes:
    character = chr(code)
    if code >= 128:  # noqa: PLR2004 - the end of ASCII
        return b" "
    if character.isalpha():
        return b"a"
    if character.isdigit() or character in "@$|":
        return b"1"
    if character in "!%&":
        return character.encode()
    return b"\0" if _CONTROL.match(character) else b" "


_CLASSES = b"".join(map(_class_of, range(256)))


def look_at(text: str) -> Look:
    r"""Shape: letters as a, digits and signs that stand for letters as 1, control characters as 0, ! % & as they are.

    All else is blank.

    >>> look_at("h4ck, b.o.m.b!").shape
    b'a1aa  a a a a!'
    """
    shape = text.encode("ascii", "replace").translate(_CLASSES)
    return Look(text, shape) if text.isascii() else Look(text, shape, frozenset(text))


def characters_in(character_class: str) -> frozenset[str]:
    """The characters of a part of a class, written with escapes: single ones and ranges."""
    found: set[str] = set()
    for first, last in _MEMBERS.findall(character_class.encode("ascii", "backslashreplace").decode("unicode_escape")):
        found.update(map(chr, range(ord(first), ord(last or first) + 1)))
    return frozenset(found)


_MEMBERS = re.compile(r"(.)(?:-(.))?", re.DOTALL)


INVISIBLE = (
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
"""Control and format characters, fillers, variation selectors, tags; part of a character class."""
_SHORTEST = 4
"""Invisible characters in a row that make a message; fewer are stray ones, or one emoji's."""
_ALL = characters_in(INVISIBLE)
_ANYWHERE = re.compile(f"[{INVISIBLE}]+")
_INSIDE_WORD = re.compile(f"(?<=[A-Za-z0-9])[{INVISIBLE}]+(?=[A-Za-z0-9])")
_TAGS = re.compile(rf"(?<![\U0001f3f4\U000e0000-\U000e007f])[\U000e0000-\U000e007f]{{{_SHORTEST},}}")
"""Not after a black flag: those are the flags of England, Scotland, Wales."""
_SELECTORS = re.compile(rf"[\ufe00-\ufe0f\U000e0100-\U000e01ef]{{{_SHORTEST},}}")
_OVERRIDDEN = re.compile("\u202e([^\u202c-\u202e\u2066-\u2069\n]*)\u202c?")
_ASCII_LETTER = re.compile("[A-Za-z]")
_TAG_OFFSET = 0xE0000
_FIRST_SELECTOR, _FIRST_SUPPLEMENT = 0xFE00, 0xE0100
_BASIC_SELECTORS = 16


def has_invisible(look: Look) -> bool:
    """Whether any character is invisible."""
    return b"\0" in look.shape or (bool(look.odd) and not look.odd.isdisjoint(_ALL))


def reveal(text: str) -> str:
    r"""The text as it is read by a machine that skips or reads what nobody sees.

    Invisible characters go: all of them where the rest is ASCII, else those inside a Latin word (elsewhere they join
    emoji or shape other scripts); messages in tags ("ASCII smuggling") or variation selectors (a byte each) appear
    between blanks; what a right-to-left override turned around is turned back.

    >>> reveal("b\u200bomb"), reveal("\u202ebmob\u202c")
    ('bomb', 'bomb')
    """
    text = _TAGS.sub(lambda found: _shown(bytes(ord(c) - _TAG_OFFSET for c in found[0])), text)
    text = _SELECTORS.sub(lambda found: _shown(bytes(map(_byte_of, found[0]))), text)
    text = _OVERRIDDEN.sub(lambda found: found[1][::-1] if _ASCII_LETTER.search(found[1]) else found[0], text)
    visible = _ANYWHERE.sub("", text)
    return visible if visible.isascii() else _INSIDE_WORD.sub("", text)


def _byte_of(selector: str) -> int:
    code = ord(selector)
    return code - _FIRST_SUPPLEMENT + _BASIC_SELECTORS if code >= _FIRST_SUPPLEMENT else code - _FIRST_SELECTOR


def _shown(message: bytes) -> str:
    shown = "".join(c for c in message.decode("utf-8", "ignore") if c.isprintable())
    return f" {shown} " if shown else ""
