"""Statements retold in the third person: "I prefer tea" becomes "User prefers tea." English, by rules.

What the rules cannot turn is told as it was said, with who said it.
"""

import re

from models.events.base import Role
from models.text.tables import PatternTables
from models.text.words import word_set

_RE = PatternTables("statements_patterns").section("retelling")

_QUOTES = str.maketrans("\u2019\u2018\u02bc\u00b4\u201c\u201d", "''''\"\"")
_MOST_LEADS = 4
_ADVERBS = word_set(
    "always never also just still often now sometimes already only even usually too mostly mainly generally really "
    "currently normally rarely both all not much rather then soon ever"
)
_AUXILIARY = {
    "am": "is", "are": "is", "were": "was", "have": "has", "do": "does", "don't": "does not", "aren't": "is not",
    "weren't": "was not", "haven't": "has not", "can't": "cannot", "won't": "will not", "didn't": "did not",
    "couldn't": "could not", "wouldn't": "would not", "shouldn't": "should not", "hadn't": "had not",
    "wasn't": "was not", "go": "goes",
}  # fmt: skip
_UNCHANGED = PatternTables("words").word_set("UNCHANGED")
_PRESENT_IN_ED = word_set("need feed speed bleed embed exceed proceed succeed seed weed breed heed")
_SHORT = {"'m": "is", "'re": "is", "'ve": "has", "'ll": "will", "'d": "would"}
_PLURAL = {"'m": "'re"}
_REFLEXIVE = {"mine": "theirs", "yours": "theirs", "myself": "themselves", "yourself": "themselves"}
_OWN = word_set("i me my mine myself")
_VERBS_IN_LY = word_set("rely reply apply fly supply multiply comply")
_WORDS_AFTER_HAD = word_set("better been already")
_OF_MORE = re.compile(r"(?<![\w'])(?:we|us|our|ours|ourselves|let's|lets)(?:'re|'ve|'ll|'d)?(?![\w'])", re.IGNORECASE)
_LET_US = re.compile(r"let'?s (?P<never>not |never )?(?:just |please )?(?P<rest>\w.*)", re.IGNORECASE | re.DOTALL)


def retold(sentence: str, role: Role) -> str:
    """The sentence as a third person tells it, whole, with a capital and a full stop.

    >>> retold("I'm allergic to nuts and my wife doesn't eat meat", Role.USER)
    "User is allergic to nuts and their wife doesn't eat meat."
    >>> retold("I've refunded the 49.90 euros to your card.", Role.ASSISTANT)
    "Assistant has refunded the 49.90 euros to the user's card."
    >>> retold("Ok, let's go with Postgres.", Role.USER)
    'User decided to go with Postgres.'
    >>> retold("We sell bread.", Role.USER)
    'User: We sell bread.'
    """
    said = led_off(sentence)
    return _closed(_in_third_person(without_courtesies(said), role)) if said else ""


def is_order(said: str) -> bool:
    """Whether a sentence, led off, tells the assistant to do something.

    >>> is_order("Cancel my order"), is_order("I cancelled it")
    (True, False)
    """
    return _RE.ORDER.fullmatch(said) is not None


def led_off(sentence: str) -> str:
    """Without greetings, thanks and other openings that tell nothing."""
    said = " ".join(sentence.translate(_QUOTES).split()).strip(" -*>#•")
    for _ in range(_MOST_LEADS):
        found = _RE.LEAD.match(said)
        if found is None:
            break
        said = said[found.end() :]
    return said


def _in_third_person(said: str, role: Role) -> str:
    user = role is Role.USER
    name, other = ("User", "the assistant") if user else ("Assistant", "the user")
    wish = _wish(said) if user else None
    if wish is not None and _OF_MORE.search(wish[1]) is None:
        return wish[0] + _third(wish[1], "they", other)
    if _OF_MORE.search(said):
        return f"{name}: {said}"
    if user and (two := _RE.AND_I.match(said)):
        return f"User and their {two['who']} {_third(said[two.end() :], 'they', other)}"
    return _third(said, name, other)


def _wish(said: str) -> tuple[str, str] | None:
    """How a decision for all or an order begins, told, and what follows; None for anything else."""
    if us := _LET_US.match(said):
        return f"User decided {'not ' if us['never'] else ''}to ", us["rest"]
    if order := _RE.ORDER.fullmatch(said):
        rest: str = order["rest"]
        return f"User asked {'not ' if order['not'] else ''}to ", rest[0].lower() + rest[1:]
    return None


def without_courtesies(said: str) -> str:
    """Without thanks and courtesies at the end."""
    return _RE.ASIDE.sub("", _RE.ASIDE.sub("", said.rstrip(" .!")).rstrip(" .!")) or said


def _third(said: str, name: str, other: str) -> str:
    """Pronouns of the first and second person turned; the first of each by name, the others "they".

    Behind "User's wife" alone "they" could be the wife.
    """
    turned: list[str] = []
    called, owning = {"i": name, "you": other}, set[str]()
    anybody = other == "the assistant" and _RE.ANYBODY.search(said) is not None
    end = 0
    for found in _RE.PRONOUN.finditer(said):
        before, word, short = said[: found.start()], found["word"].lower(), found["short"] or ""
        turned.append(said[end : found.start()])
        end = found.end()
        whose = "i" if word in _OWN else "you"
        if anybody and whose == "you":
            turned.append(found["word"] + short)
            continue
        who = _placed(called[whose], before)
        if word in {"my", "your"}:
            turned.append("their" if who == "they" or whose in owning else f"{who}'s")
            owning.add(whose)
            continue
        called[whose] = "they"
        if word in _REFLEXIVE:
            turned.append(_REFLEXIVE[word])
        elif word == "i" or (word == "you" and (short or _RE.BEFORE_SUBJECT.search(before))):
            subject, used = _subject(who, short.lower(), found["rest"])
            turned.append(subject)
            end += used
        else:
            turned.append("them" if who == "they" else who)
    return "".join([*turned, said[end:]])


def _placed(who: str, before: str) -> str:
    """A name as it stands at a sentence's opening or inside."""
    if not before.strip(" '\""):
        return who[0].upper() + who[1:]
    return {"User": "the user", "Assistant": "the assistant"}.get(who, who)


def _subject(who: str, short: str, rest: str) -> tuple[str, int]:
    """The subject with its verb in the third person, and how many characters of `rest` that took."""
    words = rest.split(" ")[1:]
    first = words[0].lower() if words else ""
    if who.lower() == "they":
        plural = {"am": "are", "was": "were"}.get(first)
        return (f"{who} {plural}", 1 + len(first)) if plural and not short else (who + _PLURAL.get(short, short), 0)
    if short:
        had = short == "'d" and first in _WORDS_AFTER_HAD
        return f"{who} {'had' if had else _SHORT[short]}", 0
    turned, used = who, 0
    for word in words:
        used += 1 + len(word)
        lower = word.lower()
        if lower not in _ADVERBS and (not lower.endswith("ly") or lower in _VERBS_IN_LY):
            return f"{turned} {in_third_person(word)}", used
        turned += f" {word}"
    return turned, used


def in_third_person(verb: str) -> str:
    """The verb behind "I" or "you" as it stands behind "she".

    >>> [in_third_person(verb) for verb in ("have", "prefer", "try", "wash", "decided", "need", "can't")]
    ['has', 'prefers', 'tries', 'washes', 'decided', 'needs', 'cannot']
    """
    lower = verb.lower()
    if lower in _AUXILIARY:
        return _AUXILIARY[lower]
    if lower in _UNCHANGED or not lower.isalpha() or (lower.endswith("ed") and lower not in _PRESENT_IN_ED):
        return verb
    if lower.endswith("y") and lower[-2:-1] not in set("aeiou"):
        return f"{verb[:-1]}ies"
    return verb + ("es" if lower.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def _closed(turned: str) -> str:
    turned = turned.strip().rstrip(" .!,;:-")
    if not any(map(str.isalnum, turned)):
        return ""
    stop = "" if turned[-1] in "…?" else "."
    return turned[0].upper() + turned[1:] + stop
