"""One form for each way of writing a word that rules look for; fillers go."""

from __future__ import annotations

import re
from collections.abc import Iterator

from models.text.words import word_set

_CANON = re.compile(
    r"\b(?:i am|im|i m|(?:i have|i've|ive) got(?= (?:an?|one|two|three|four|\d|some|no|my|asthma"
    r"|diabetes|adhd|epilepsy|celiac|coeliac) (?!new\b))|i got|we(?:'ve| have) got(?= (?:an?|one|two|"
    r"three|four|\d|some|no)\b)|number's|i've|ive|i do not|i dont|cannot|can"
    r" not|cant|do not|dont|doesnt"
    r"|does not|is not|isnt|favorites?|favourites|favs?|faves?|any more|any longer|dnt|plz|pls|u|ur|gonna|wanna"
    r"|gotta|kinda|btw|bc|cuz|prefered"
    r"|i will|my name's|name's|birthday's|timezone's|budget's|tongue's|email's|vegeterian"
    r"|vegitarian|alergic|allergc|i would|didnt|did not"
    r"|wont|will not"
    r"|kind of|sort of|a bit|a little|basically|really|actually really|absolutely|definitely|totally|truly"
    r"|honestly|literally|personally|obviously|simply|quite|genuinely|tbh|ngl|very much)\b",
)
_CANON_FORMS = {
    way: form
    for form, ways in {
        "I'm": ("i am", "im", "i m"),
        "I've": ("i've", "ive"),
        "I have": ("i have got", "i've got", "ive got"),
        "we have": ("we've got", "we have got"),
        "number is": ("number's",),
        "I got": ("i got",),
        "I'd": ("i would",),
        "I'll": ("i will",),
        "I don't": ("i do not", "i dont"),
        "can't": ("cannot", "can not", "cant"),
        "don't": ("do not", "dont", "dnt"),
        "doesn't": ("doesnt", "does not"),
        "didn't": ("didnt", "did not"),
        "won't": ("wont", "will not"),
        "isn't": ("is not", "isnt"),
        "favourite": ("favorite", "favorites", "favourites", "fav", "favs", "fave", "faves"),
        "anymore": ("any more", "any longer"),
        "please": ("plz", "pls"),
        "you": ("u",),
        "your": ("ur",),
        "because": ("bc", "cuz"),
        "preferred": ("prefered",),
        "my name is": ("my name's",),
        "name is": ("name's",),
        "birthday is": ("birthday's",),
        "timezone is": ("timezone's",),
        "budget is": ("budget's",),
        "tongue is": ("tongue's",),
        "email is": ("email's",),
        "pronouns are": ("pronouns're",),
        "vegetarian": ("vegeterian", "vegitarian"),
        "allergic": ("alergic", "allergc"),
        "by the way": ("btw",),
        "going to": ("gonna",),
        "want to": ("wanna",),
        "have to": ("gotta",),
        "kind of": ("kinda", "kind of"),
        "sort of": ("sort of",),
    }.items()
    for way in ways
}
"""What is not named here is a filler and goes."""
_CANON_WORDS = word_set(
    "number's fav favs fave faves am im m got ive cannot not cant dont doesnt isnt favorite "
    "favorites favourites more longer "
    "dnt plz pls u ur gonna "
    "wanna gotta kinda btw bc cuz prefered name's birthday's timezone's budget's tongue's "
    "email's vegeterian vegitarian alergic allergc didnt did wont "
    "kind sort bit little basically really actually absolutely definitely totally truly honestly "
    "literally personally "
    "obviously simply quite genuinely tbh ngl much"
)
_ABBREVIATION = re.compile(r"\b(St|Dr|Mr|Mrs|Ms|Prof|Mt)\.(?= )")


def canonical(text: str, words: set[str]) -> str:
    """The text with plain forms, case kept; `words` are its own, folded.

    >>> canonical("im really into jazz, dont ask", {"im", "really", "into", "jazz", "dont", "ask"})
    "I'm  into jazz, don't ask"
    """
    if "." in text:
        text = _ABBREVIATION.sub(r"\1", text)
    return text if _CANON_WORDS.isdisjoint(words) else "".join(_pieces(text))


def _pieces(text: str) -> Iterator[str]:
    """Pieces of the text with one form for each way of writing; what has none is a filler and goes."""
    lower, end = text.lower(), 0
    for match in _CANON.finditer(lower):
        yield text[end : match.start()]
        yield _CANON_FORMS.get(match[0], "")
        end = match.end()
    yield text[end:]
