"""A message as statements: clauses with their subject, without what leads into them, and how far each is meant."""

import re
from collections.abc import Iterator
from itertools import chain, islice

from msgspec import Struct
from msgspec.structs import replace

from models.language.facts import vocabulary
from models.language.facts.attribution import supposed_from
from models.language.facts.openers import HEDGED, Led, canonical, lead_off
from models.language.facts.vocabulary import WORDS
from models.text.tables import PatternTables
from models.text.words import word_set, words_of


class Way(Struct, frozen=True, gc=False):
    """A way of saying something, and the plain statements of it."""

    pattern: re.Pattern[str]
    forms: tuple[str, ...]


TABLES = {
    name: PatternTables(name, words=WORDS, flags=re.IGNORECASE) for name in ("orders", "identity", "limits", "likings")
}


_GROUP = re.compile(r"<(\w)>")
_WAYS = tuple(
    Way(row.pattern, tuple(_GROUP.sub(r"\\g<\1>", form) for form in row.cells[0].split(" | ")))
    for table in TABLES.values()
    for row in table.rows("ways")
)


def plainly(form: str) -> tuple[str, ...]:
    """The plain statements of a clause; none if it is said in no way that is known.

    >>> plainly("home is Oslo these days")
    ('I live in Oslo these days',)
    """
    return tuple(again for said in _said_plainly(form) for again in _said_plainly(said) or (said,))


def _said_plainly(form: str) -> tuple[str, ...]:
    for way in _WAYS:
        if found := way.pattern.match(form):
            return tuple(found.expand(template) for template in way.forms)
    return ()


_RE = PatternTables("facts_patterns", words=vocabulary.WORDS).section("statements")

MAX_STATEMENTS = 64
MAX_STATEMENT_CHARS = 400


class Statement(Struct, frozen=True, gc=False):
    """A clause in canonical form: it begins with its subject ("I", "I'm", "my"), or with an order's verb."""

    text: str
    weight: float = 1.0
    """How far it is meant: below 1 behind "I think", "maybe"."""
    corrects: bool = False
    """The user puts something right."""
    standing: bool = False
    """Asked for from now on."""
    condition: str = ""
    """When an order holds: "when I ask for code"."""
    passing: bool = False
    """Its sentence speaks of today or of this time."""
    lower: bool = False
    """The user writes without capitals, so that a name need not have one."""
    said: str = ""
    """How it was said, where that is another way than the text."""


_SENTENCE = re.compile(r"(?<=[.!?\u2026])(?=[\s\")])|\n")
_HEDGE_WORDS = word_set(
    "maybe perhaps probably possibly might may sure could think guess kinda kind sort believe suppose"
)
_FORGETTING = re.compile(r"(?:please )?(?:forget|delete|erase|remove|clear)\b", re.IGNORECASE)
_NOUN = re.compile(r"my [\w'-]+(?: [\w'-]+)?", re.IGNORECASE)
_FREQUENCY = re.compile(r"(?:always|never)\b", re.IGNORECASE)
FIRST_PERSON_FORMS = {"has": "have", "doesn't": "don't", "does": "do", "can't": "can't", "avoids": "avoid"}
_TODAY = re.compile(r"\b(?:today|tonight|right now|this time|this once|for now|at the moment|just now|this week)\b")


def statements_of(text: str, words: set[str]) -> Iterator[Statement]:
    """The statements of what a user says in the first person or asks for; questions and suppositions left out.

    `words` are the text's own, folded: checks are skipped without their words.
    """
    without_capitals = text == text.lower()
    sentences = _SENTENCE.split(canonical(text, words))
    said = (sentence for sentence in sentences if not vocabulary.CUES.isdisjoint(words_of(sentence.lower())))
    each = chain.from_iterable(_of_sentence(sentence, words) for sentence in said)
    for statement in islice(each, MAX_STATEMENTS):
        yield replace(statement, lower=True) if without_capitals else statement


def _of_sentence(sentence: str, words: set[str]) -> Iterator[Statement]:
    asked = sentence.rstrip().endswith("?")
    if not vocabulary.RELATIONSHIPS.isdisjoint(words):
        sentence = _RE.COUPLE.sub("we", sentence)
    meant = sentence[: supposed_from(sentence.lower())].rstrip(".!?;\u2026 ")
    whole = lead_off(" ".join(meant.split()))
    passing = _TODAY.search(whole.form.lower()) is not None
    for led in _meant(whole, asked=asked):
        weight = HEDGED if not _HEDGE_WORDS.isdisjoint(words) and _RE.HEDGE.search(led.form) else led.weight
        whole_forms = plainly(led.form)
        for piece in [led.form] if whole_forms else _pieces(led.form):
            forms = whole_forms if piece == led.form else plainly(piece)
            for form in forms or (piece,):
                said = piece if forms else ""
                yield Statement(form, weight, led.corrects, led.standing, led.condition, passing, said=said)


def _meant(whole: Led, *, asked: bool) -> Iterator[Led]:
    """Clauses of a sentence that are no questions, conditions, or for this once; what leads into one holds on."""
    clauses = list(_clauses(whole.form))
    standing, corrects, polite, condition = whole.standing, whole.corrects, whole.polite, whole.condition
    named, forgetting = "", None
    for n, (clause, goes_on) in enumerate(clauses):
        last = n == len(clauses) - 1
        led = lead_off(clause[:MAX_STATEMENT_CHARS])
        form = _in_first_person(led.form)
        standing, corrects, polite = standing or led.standing, corrects or led.corrects, polite or led.polite
        condition = led.condition or condition
        if forgetting and _NOUN.fullmatch(form):
            form = f"{forgetting[0]} {form}"
        forgetting = _FORGETTING.match(form)
        if changed := _RE.CHANGED.match(form):
            named = changed["a"] or changed["b"]
        elif named and (now := _RE.NOW.match(form)):
            form, corrects, named = f"my {named} is {now['v']}", True, ""
        if _RE.ASKING.match(form):
            if not last and _asks_on(form, asked=asked):
                return
            continue
        if goes_on and _FREQUENCY.match(form) and _RE.SUBJECT.match(clauses[n - 1][0]):
            continue
        if not form or (last and asked and not polite and not _RE.POLITE_QUESTION.match(clause)):
            continue
        if not last and _RE.FOR_ONCE.match(form):
            return
        yield Led(form, led.weight if n else min(whole.weight, led.weight), corrects, standing, polite, condition)


def _asks_on(form: str, *, asked: bool) -> bool:
    """Whether what follows a question's or a condition's opening is asked or supposed too."""
    return not _RE.CONDITION_OF_YOU.match(form) and (asked or form.lower().startswith(("if ", "unless ")))


def _clauses(sentence: str) -> Iterator[tuple[str, bool]]:
    """Clauses, and whether "and" or "but" goes on with the subject of the one before."""
    end, goes_on = 0, False
    for match in _RE.CLAUSE.finditer(sentence.lower()):
        if clause := sentence[end : match.start()].strip():
            yield clause, goes_on
        end, goes_on = match.end(), "and" in match[0] or "but" in match[0]
    if clause := sentence[end:].strip():
        yield clause, goes_on


def _in_first_person(form: str) -> str:
    """With the subject that is left out: "live in Oslo", "as a vegan", "as someone who lives in Porto"."""
    if _RE.TELEGRAPHIC.match(form):
        return f"I {form}"
    if revised := _RE.SET.match(form):
        return f"my {revised['noun'] or revised['changed']} is {revised['v'] or revised['now']}"
    role = _RE.AS.match(form)
    if role is None:
        return form
    if role["role"]:
        return f"I'm {role['role']}"
    verb = role["verb"].strip().lower()
    if verb in {"is", "'s"}:
        return f"I'm {role['rest']}"
    return f"I {FIRST_PERSON_FORMS.get(verb, verb.removesuffix('s'))} {role['rest']}"


def _pieces(clause: str) -> Iterator[str]:
    """Statements of a clause: "I'm a nurse and from Bergen" says two things of its subject."""
    subject = clause[:4].lower()
    if not subject.startswith(("i ", "i'm ", "i've", "i'd ", "i'll")):
        yield clause
        return
    first, *elided = _RE.ELIDED.split(clause)
    for elided_part in (first, *(f"I {rest}" for rest in elided)):
        part = f"I'm {elided_part[5:]}" if elided_part[:5].lower() == "i am " else elided_part
        if part[:4].lower() == "i'm ":
            head, *rest = _RE.PIECE.split(part)
            yield head
            yield from (f"I'm {piece}" for piece in rest)
        elif part[:7].lower() == "i have ":
            head, *rest = _RE.OWNED.split(part)
            yield head
            yield from (f"I have {piece}" for piece in rest)
        else:
            yield part
