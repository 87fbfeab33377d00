"""One cheap look at a text, by which it is suspected of a disguise or not."""

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
