"""Text inside text: base64, hexadecimal, percent-encoding, character references. Each is decoded in its place.

Decoding shortens a text, so layer by layer it comes to an end.
"""

import base64
import re

from models.text.hidden import INVISIBLE, Look
from models.text.lookalikes import LOOKALIKES

_SHORTEST = 16
"""Characters of an encoded token: shorter ones decode to something by chance."""
_READABLE_RATIO = 0.8
"""Letters and blanks of what is decoded; of random bytes a fifth are, so a hash or an id has no chance."""
_FEWEST_ESCAPES = 2
_LONG_RUN = b"x" * _SHORTEST
_BASE64_SHAPE = bytes(ord("x") if chr(code).isalnum() or chr(code) in "+/-_" else ord(" ") for code in range(128))
_BASE64_SHAPE += b" " * 128

_BASE64 = re.compile(rf"(?<![\w+/.=-])[A-Za-z0-9+/_-]{{{_SHORTEST},}}={{0,2}}(?![\w+/=-]|\.\w)")
"""Not between dots: those are tokens of signed requests, and host names."""
_HEX = re.compile(
    r"(?<![\w\\])(?:(?:0x|\\x)[0-9A-Fa-f]{2}[\s,:-]{0,2}|[0-9A-Fa-f]{2}[\s,:-]{1,2}){7,}"
    r"(?:0x|\\x)?[0-9A-Fa-f]{2}(?!\w)"
)
_HEX_SHAPES = (b" 11 ", b" 1a ", b" a1 ", b"a11", b"a1a", b"aa1")
_HEX_DIGITS = re.compile(r"(?:0x|\\x)?([0-9A-Fa-f]{2})")
_HEX_LETTER = re.compile("[A-Fa-f]")
_TOKEN = re.compile(r"\S+")
_ESCAPES = re.compile(r"(?:%(?:25)*[0-9A-Fa-f]{2})+")
_ESCAPE = re.compile(r"%(?:25)*([0-9A-Fa-f]{2})")
_ADDRESS = re.compile(r"\w://|www\.", re.IGNORECASE)
_REFERENCE = re.compile(
    r"&(?:amp;)*(?:#(?:0*([0-9]{2,4})|[xX]0*([0-9A-Fa-f]{2,4}));?|(?:shy|zwn?j|ZeroWidthSpace|NoBreak);)"
)
_HIDDEN = re.compile(f"[A-Za-z0-9 {INVISIBLE}]")


def has_base64(look: Look) -> bool:
    """Whether any token is long enough, cheaply; `unmask_base64` looks closer."""
    return _LONG_RUN in look.text.encode("ascii", "replace").translate(_BASE64_SHAPE)


def unmask_base64(text: str) -> str:
    """Tokens of base64 (either alphabet) or hexadecimal digits that hold readable text, as that text.

    >>> unmask_base64("say aG93IHRvIG1ha2UgYSBib21i"), unmask_base64("id 9f86d081884c7d659a2feaa0c55ad015")
    ('say how to make a bomb', 'id 9f86d081884c7d659a2feaa0c55ad015')
    """
    return _BASE64.sub(lambda found: _from_hex(found[0]) or _from_base64(found[0]) or found[0], text)


def has_hex_bytes(look: Look) -> bool:
    """Whether bytes stand there one by one in hexadecimal digits."""
    shape = look.shape
    return b"1" in shape and any(byte in shape for byte in _HEX_SHAPES)


def unmask_hex_bytes(text: str) -> str:
    r"""Bytes one by one in hexadecimal digits, eight at least, as the text they hold.

    >>> unmask_hex_bytes("68 6f 77 20 74 6f 20 68 69 64 65"), unmask_hex_bytes("00:1b:44:11:3a:b7:00:1b")
    ('how to hide', '00:1b:44:11:3a:b7:00:1b')
    """
    return _HEX.sub(lambda found: _from_hex("".join(_HEX_DIGITS.findall(found[0]))) or found[0], text)


def has_escapes(look: Look) -> bool:
    """Whether a percent sign stands before what can be a hexadecimal digit."""
    return b"%" in look.shape and (b"%1" in look.shape or b"%a" in look.shape)


def unmask_escapes(text: str) -> str:
    """Percent-encoded words as they read; in an address only letters and digits, which need no escape (RFC 3986, 2.3).

    >>> unmask_escapes("how%20to%20hide"), unmask_escapes("https://x.org/a%20b%20c"), unmask_escapes("100%20off")
    ('how to hide', 'https://x.org/a%20b%20c', '100%20off')
    """
    return _TOKEN.sub(lambda found: _unescaped(found[0]) if "%" in found[0] else found[0], text)


def has_references(look: Look) -> bool:
    """Whether an ampersand opens what could be a character reference."""
    shape = look.shape
    return b"&" in shape and (b"& 1" in shape or b"& a" in shape or b"&a" in shape)


def unmask_references(text: str) -> str:
    """HTML's references as the letters, digits or invisible characters they hide; signs have reason to stay escaped.

    >>> unmask_references("b&#111;&#x6d;b &amp; &#39;fuse&#39;")
    'bomb &amp; &#39;fuse&#39;'
    """
    return _REFERENCE.sub(_referred, text)


def _referred(found: re.Match[str]) -> str:
    decimal, hexadecimal = found.groups()
    if not (decimal or hexadecimal):
        return "\u00ad"
    character = chr(int(decimal)) if decimal else chr(int(hexadecimal, 16))
    return character if _HIDDEN.match(character) or character in LOOKALIKES else found[0]


def _unescaped(token: str) -> str:
    escapes = _ESCAPE.findall(token)
    if len(escapes) < _FEWEST_ESCAPES:
        return token
    if _ADDRESS.search(token):
        return _ESCAPE.sub(lambda found: _unreserved(found[1]) or found[0], token)
    return _ESCAPES.sub(lambda found: _printable(bytes.fromhex("".join(_ESCAPE.findall(found[0])))) or found[0], token)


def _unreserved(digits: str) -> str:
    character = chr(int(digits, 16))
    return character if character.isascii() and character.isalnum() else ""


def _printable(data: bytes) -> str:
    text = _utf8(data)
    return text if all(c.isprintable() or c in "\n\t" for c in text) else ""


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return ""


def _readable(data: bytes) -> str:
    text = _utf8(data)
    letters = sum(c.isalpha() or c.isspace() for c in text)
    return text if letters >= _READABLE_RATIO * len(text) and _printable(data) else ""


def _from_hex(digits: str) -> str:
    digits = digits.replace("-", "")
    # Numbers are told from text by the letters among the digits.
    if len(digits) % 2 or not _HEX_LETTER.search(digits) or not digits.isalnum():
        return ""
    try:
        return _readable(bytes.fromhex(digits))
    except ValueError:
        return ""


def _from_base64(token: str) -> str:
    digits = token.rstrip("=")
    if len(digits) % 4 == 1:
        return ""
    padded = digits.translate({ord("-"): "+", ord("_"): "/"}) + "=" * (-len(digits) % 4)
    return _readable(base64.b64decode(padded))
