"""Hasty spellings written out, so that each wording needs one rule: "cant" is "can't", "wanna" is "want to"."""

from __future__ import annotations

import re

_APOSTROPHE = {
    "cant": "can't",
    "wont": "won't",
    "dont": "don't",
    "doesnt": "doesn't",
    "didnt": "didn't",
    "isnt": "isn't",
    "arent": "aren't",
    "wasnt": "wasn't",
    "werent": "weren't",
    "havent": "haven't",
    "hasnt": "hasn't",
    "shouldnt": "shouldn't",
    "couldnt": "couldn't",
    "wouldnt": "wouldn't",
    "mustnt": "mustn't",
    "im": "I'm",
    "ive": "I've",
    "youre": "you're",
    "theyre": "they're",
    "weve": "we've",
    "thats": "that's",
}
_SHORT = {
    "wanna": "want to",
    "gonna": "going to",
    "gotta": "have to",
    "pls": "please",
    "plz": "please",
    "bc": "because",
    "u": "you",
    "w/": "with",
    "w/o": "without",
    "tmrw": "tomorrow",
}
_WRITTEN_OUT = _APOSTROPHE | _SHORT
_HASTY = re.compile(
    rf"(?<![\w'/.@-])(?:(?P<word>{'|'.join(sorted(map(re.escape, _WRITTEN_OUT), key=len, reverse=True))})(?![\w'/@-])"
    # "lets" and "id" are words of their own, except where these stand.
    r"|(?:^|(?<=[.,:;!] )|(?<=\bok )|(?<=\bso ))(?P<lets>lets)(?= (?!(?:us|me|you|people|them)\b)[a-z])"
    r"|(?P<would>id)(?= (?:rather|like|prefer|love)\b))",
    re.IGNORECASE | re.MULTILINE,
)


def written_out(text: str) -> str:
    """A text with hasty spellings written out; the case of a first letter is kept.

    >>> written_out("Cant use it bc id rather wait, pls")
    "Can't use it because I'd rather wait, please"
    """
    return _HASTY.sub(_full, text)


def _full(match: re.Match[str]) -> str:
    if match["word"] is None:
        return "let's" if match["lets"] else "I'd"
    full = _WRITTEN_OUT[match["word"].lower()]
    return full[:1].upper() + full[1:] if match["word"][:1].isupper() and len(match["word"]) > 1 else full
