"""Texts that hide what they say, read as they are meant. The entry; by kind: hidden, lookalikes, encodings, respelling.

A scorer reads the unmasked text, and is told that there was a disguise. Plain text costs one `look` and stays as it is,
byte for byte. English words only are looked for; a text in another language or script keeps its letters.
"""

from collections.abc import Callable

from msgspec import Struct

from models.text import encodings, hidden, lookalikes, respelling
from models.text.hidden import Look, look_at
from models.text.words import capped

INVISIBLE = "invisible"
"""Characters nobody sees: inside words, as a message, or turning the direction."""
LOOKALIKES = "lookalikes"
MARKS = "marks"
REFERENCES = "references"
ESCAPES = "escapes"
BASE64 = "base64"
"""Or a token of hexadecimal digits."""
HEX_BYTES = "hex_bytes"
SPELT_OUT = "spelt_out"
SIGNS = "signs"
"""Digits and signs for letters: leetspeak."""
CIPHER = "cipher"
"""ROT13 or backwards."""
DISGUISES = (INVISIBLE, LOOKALIKES, MARKS, REFERENCES, ESCAPES, BASE64, HEX_BYTES, SPELT_OUT, SIGNS, CIPHER)

_MOST_LAYERS = 64
"""Disguises within disguises: base64 takes off a quarter each time, so 100,000 characters hold no more than 30."""
_NONE: frozenset[str] = frozenset()


class Unmasked(Struct, frozen=True, gc=False):
    """A text as it is meant, and by which disguises it was hidden, each one of `DISGUISES`; none: it is the text."""

    text: str
    disguises: frozenset[str] = _NONE


_Step = tuple[str, Callable[[Look], bool], Callable[[str], str]]
_PLAIN_STEPS: tuple[_Step, ...] = (
    (BASE64, encodings.has_base64, encodings.unmask_base64),
    (CIPHER, respelling.is_ciphered, respelling.decipher),
    (SPELT_OUT, respelling.is_spelt_out, respelling.join_letters),
)
"""For a text of nothing but letters and plain punctuation."""
_STEPS: tuple[_Step, ...] = (
    (INVISIBLE, hidden.has_invisible, hidden.reveal),
    (LOOKALIKES, lookalikes.has_lookalikes, lookalikes.unmask_lookalikes),
    (MARKS, lookalikes.has_marks, lookalikes.strip_marks),
    (REFERENCES, encodings.has_references, encodings.unmask_references),
    (ESCAPES, encodings.has_escapes, encodings.unmask_escapes),
    (HEX_BYTES, encodings.has_hex_bytes, encodings.unmask_hex_bytes),
    *_PLAIN_STEPS,
    (SIGNS, respelling.has_signs, respelling.unmask_signs),
)
"""By name: what suspects a text cheaply, and what then looks closer and takes the disguise off."""


def as_meant(text: str) -> Unmasked:
    """What a scorer reads of a text: its head and tail without disguise.

    Any string will do: lone surrogates, which no record holds and no tokeniser takes, are read as question marks.
    """
    return unmask(capped(text).encode("utf-8", "replace").decode())


def unmask(text: str) -> Unmasked:
    r"""Take off what hides a text, layer by layer.

    Encoded tokens are replaced by what they say. The result is no longer than twice the text and 256 characters, and
    unmasking it again changes nothing. Any string will do, lone surrogates as well. The cost is linear in its length:
    to bound it, cap the text before.

    >>> unmask("h\u200bow to m4ke a b-o-m-b").text
    'how to make a bomb'
    >>> unmask("My mp3 player broke at 10am.").disguises
    frozenset()
    """
    disguises: frozenset[str] = _NONE
    for _ in range(_MOST_LAYERS):
        disguise, text = _one_layer_less(text)
        if not disguise:
            break
        disguises |= {disguise}
    return Unmasked(text, disguises)


def _one_layer_less(text: str) -> tuple[str, str]:
    look = look_at(text)
    for disguise, suspected, undo in _PLAIN_STEPS if look.is_plain else _STEPS:
        if suspected(look) and (undone := undo(text)) != text:
            return disguise, undone
    return "", text
