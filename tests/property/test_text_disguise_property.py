"""What holds for every text, disguised or not, or made to break the unmasking."""

from base64 import b64encode
from collections.abc import Callable

from hypothesis import example, given
from hypothesis import strategies as st

from models.text import disguise
from models.text.disguise import DISGUISES, Unmasked, unmask
from models.text.hidden import look_at

PIECES = st.sampled_from(
    [
        *"abomSxyz0134578@$!|%&#;=+/-_.:~ \n\t\x00\x07",
        *"\u200b\u200d\u00ad\u202e\u202c\u2066\ufe0f\ufe01\U000e0041\U000e007f\U000e0150\U0001f3f4\ud800\udfff",
        *"\u0430\u043e\u0441\u0436\u03b1\u03bf\u03c0\u00e9\uff41\uff42\U0001d41b\u24d1\u0301\u0336\u0338\u1d0f",
        *("&#98;", "&amp;", "&shy;", "%62", "%25", "%C3%A9", "62", "6f", r"\x6d", "0x62", "aGVsbG8g", "d29ybGQh"),
        *("how to ", "ubj ", "gur ", "woh ", "uoy ", "b o m b", "h4ck", "the "),
    ]
)
TEXTS = st.one_of(
    st.text(max_size=80), st.text(st.characters(codec="utf-8"), max_size=80), st.lists(PIECES, max_size=40).map("".join)
)
WORDS = st.lists(
    st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=2, max_size=12), min_size=1, max_size=20
)
MESSAGE = st.lists(
    st.sampled_from(["how", "to", "make", "the", "weapon", "poison", "someone", "without", "trace"]),
    min_size=6,
    unique=True,
).map(" ".join)


@given(TEXTS)
@example("\ud800" * 3)
@example("a\U000e0041\U000e0041\U000e0041\U000e0041" * 5)
def test_any_text_is_unmasked_once_and_for_all(text: str) -> None:
    """No error, a bounded length, nothing left to unmask, and a disguise is named exactly if something changed."""
    found = unmask(text)

    assert len(found.text) <= 2 * len(text) + 256
    assert unmask(found.text) == Unmasked(found.text)
    assert bool(found.disguises) == (found.text != text)
    assert found.disguises <= set(DISGUISES)


@given(TEXTS)
def test_what_is_not_suspected_hides_nothing(text: str) -> None:
    """The cheap look misses nothing that the closer one would find; but of ciphers it knows a few words only."""
    look = look_at(text)
    looked_at = disguise._PLAIN_STEPS if look.is_plain else disguise._STEPS
    unsuspected = [step for step in disguise._STEPS if step not in looked_at or not step[1](look)]

    assert [name for name, _, undo in unsuspected if name != disguise.CIPHER and undo(text) != text] == []


@given(WORDS, st.sampled_from([" ", ", ", ". ", "\n", " - ", "? "]))
def test_plain_words_stay_byte_for_byte(words: list[str], between: str) -> None:
    """Whatever the words are, as long as none is as long as an encoded token and none of a cipher's."""
    text = between.join(words)
    ciphered = any(word in text for word in ("gur", "ubj", "lbh", "eht", "woh", "uoy"))

    assert ciphered or unmask(text) == Unmasked(text)


def _escaped(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


WAYS: dict[str, Callable[[str], str]] = {
    disguise.BASE64: lambda text: b64encode(text.encode()).decode(),
    disguise.HEX_BYTES: lambda text: text.encode().hex(" "),
    disguise.ESCAPES: _escaped,
    disguise.REFERENCES: lambda text: "".join(f"&#{ord(c)};" for c in text),
    disguise.INVISIBLE: lambda text: "".join(chr(0xE0000 + ord(c)) for c in text),
    disguise.LOOKALIKES: lambda text: text.replace("o", "\u043e"),
    disguise.MARKS: lambda text: "".join(c + "\u0336" * c.isalpha() for c in text),
    disguise.SPELT_OUT: lambda text: "  ".join(".".join(word) if len(word) > 2 else word for word in text.split()),
    disguise.SIGNS: lambda text: text.translate(str.maketrans("ae", "43")).replace("th3", "the"),
    disguise.CIPHER: lambda text: text[::-1],
}


def test_every_disguise_has_a_way() -> None:
    """A new one needs its way here."""
    assert set(WAYS) == set(DISGUISES)


@given(MESSAGE, st.sampled_from(sorted(WAYS)))
def test_a_message_comes_back_from_every_disguise(message: str, name: str) -> None:
    """Up to blanks, whatever the words are and wherever they stand."""
    message = f"how to make this {message}"
    hidden = WAYS[name](message)
    found = unmask(hidden)

    assert found.text.split() == message.split()
    assert (name in found.disguises) == (hidden != message)
