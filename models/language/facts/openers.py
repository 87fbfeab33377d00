"""Openers of a statement ("remember that", "I think", "from now on"), and one form for each way of writing a word."""

import re
from typing import NamedTuple

from models.text.tables import PatternTables, by_way, read_table
from models.text.words import word_set

_WAYS = by_way(read_table("words")["forms"]["WAYS"])
"""Fillers have no form."""
_WORDS = frozenset(way.rpartition("_")[2] for way in _WAYS)
"""Of each way the last: most texts have none."""
_RE = PatternTables("facts_patterns", words={"WAYS": [way for way in _WAYS if "_got" not in way]}).section("openers")
_ABBREVIATION = re.compile(r"\b(St|Dr|Mr|Mrs|Ms|Prof|Mt)\.(?= )")


def canonical(text: str, words: set[str]) -> str:
    """The text with plain forms, case kept; `words` are its own, folded.

    >>> canonical("im really into jazz, dont ask", {"im", "really", "into", "jazz", "dont", "ask"})
    "I'm  into jazz, don't ask"
    """
    if "." in text:
        text = _ABBREVIATION.sub(r"\1", text)
    if _WORDS.isdisjoint(words):
        return text
    return _RE.CANON.sub(lambda found: _WAYS[found[0].lower().replace(" ", "_")], text)


HEDGED = 0.4
"""Factor on the confidence of what is only thought to be so."""
_MAX_OPENERS = 8


class Led(NamedTuple):
    """What is left of a clause, and what led into it."""

    form: str
    weight: float = 1.0
    corrects: bool = False
    standing: bool = False
    polite: bool = False
    condition: str = ""


_CONDITION = re.compile(r"when|if (?!in doubt)|unless|(?:every|each|any) ?time (?:i|you|we)", re.IGNORECASE)
_IMPERATIVES = by_way(read_table("words")["forms"]["IMPERATIVES"])
"""As they stand behind "I'd prefer if you" and "would you mind"."""
_FOR_YEARS = re.compile(r"i've been (work|liv)ing(?= (?:as|at|for|in|near|outside)\b)", re.IGNORECASE)
_FOR_YEARS_FORMS = {"work": "I work", "liv": "I live"}
_SUBJECTS = word_set("i my we he she they it the a an this his her their there it's he's she's they're we're")
_LEADING = PatternTables("words").word_set("LEADING")
"""Second words of what leads into a clause though it begins as a statement does."""


def lead_off(clause: str) -> Led:
    """The clause without its openers, and what they say of it."""
    led = Led(clause)
    for _ in range(_MAX_OPENERS):
        first, _, rest = led.form.partition(" ")
        if first.lower() in _SUBJECTS and rest.partition(" ")[0].lower() not in _LEADING:
            break  # Most clauses: nothing can lead into them.
        before = led.form
        led = _without_opener(led)
        if led.form == before:
            break
    form = led.form
    if " actually " in form:
        led, form = led._replace(corrects=True), form.replace(" actually ", " ")
    if found := _FOR_YEARS.match(form):
        form = _FOR_YEARS_FORMS[found[1].lower()] + form[found.end() :]
    if found := _RE.ADVERBS.match(form):
        form = f"{found[1]} {form[found.end() :]}"
    return led._replace(form=form)


def _without_opener(led: Led) -> Led:
    form = led.form
    if found := _RE.CORRECTION.match(form):
        return led._replace(form=form[found.end() :], corrects=True)
    if found := _RE.LEAD.match(form):
        return led._replace(form=form[found.end() :])
    if found := _RE.HEDGE_LEAD.match(form):
        return led._replace(form=form[found.end() :], weight=HEDGED)
    if found := _RE.STANDING_LEAD.match(form):
        condition = found[0].strip(" ,:") if _CONDITION.match(form) else led.condition
        return led._replace(form=form[found.end() :], standing=True, condition=condition)
    if found := _RE.POLITE.match(form):
        verb, _, rest = form[found.end() :].partition(" ")
        return led._replace(form=f"{_IMPERATIVES.get(verb.lower(), verb)} {rest}", polite=True)
    return led
