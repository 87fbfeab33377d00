"""A message as statements: clauses with their subject, without what leads into them, and how far each is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice

from msgspec import Struct
from msgspec.structs import replace

from models.language.facts import vocabulary
from models.language.facts.attribution import supposed_from
from models.language.facts.openers import HEDGED, Led, lead_off
from models.language.facts.rephrased import Way, plainly, ways_for
from models.language.facts.wording import canonical
from models.text.words import word_set, words_of

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
_STARTS = (
    r"(?:i|i'm|i've|i'd|i'll|my|our|everyone|people|friends|(?:her|his|their)(?! names?\b)|we|we're"
    r"|we've|he|she|they|it|it's|ideas"
    r"|thoughts|suggestions|tips|recommendations|advice|email|phone|be|changed|you|your|this|that"
    r"|that's|there|please|always|never"
    r"|don't|call|can|could|would|will|what|how|why|where|which|who|when|if|is|are|do|does|did"
    r"|should|just|also|keep"
    r"|use|answer|reply|respond|forget|remember|let's|from now on|stop|no longer|any|(?:the )?name is|make"
    r"|avoid|write|give"
    r"|because|since|so|now (?=it's|i\b|i'm|my)|no need|ignore|delete|as|whenever|every time|in future|going forward)\b"
)
_CLAUSE = re.compile(
    r"(?:[,:()]{1,3}+ ?| -{1,3} |\.{2,4}+ ?)(?:(?:and|but|so|also|plus|then|or|yet|because|since"
    r"|although|though|while|as) )*"
    rf"(?={_STARTS}|\w+(?: \w+)? here$)"
    rf"| (?:and|but|so|plus|because|although|though|while|since|as) (?={_STARTS})"
    r"(?!(?:and|but) (?:that|this|it|when)\b)"
    r"|[()] ?|, ?(?=\u00bf)| (?=(?:so|because|but) (?:i|i'm|my|please|don't|can)\b)"
    r"| (?<=[a-z] )(?<!forget )(?<!forget that )(?<!forget where )(?<!forget how )(?=(?:i'm|my name "
    r"is|i live|i work|i prefer|i have|i don't|i can't) )",
)
_ELIDED = re.compile(
    r"(?:\s*,\s*(?:(?:and|but)\s+)?|\s+(?:and|but)\s+)(?:(?:also|mostly|usually|now|still"
    r"|just)\s+)*(?=(?:live|work|prefer"
    r"|use|love|(?<!, )like(?! i\b)|hate|dislike|enjoy|speak|have|was born|can't|don't|go by|study"
    r"|avoid|code in|teach|grew up"
    r"|moved|identify|never|only|am|drink|eat|run|need|want|adore|play|follow|keep|got|adopted"
    r"|started|switched|became"
    r"|turned|write|program|work)\s)",
    re.IGNORECASE,
)
_PIECE = re.compile(
    r"(?:\s*,\s*(?:(?:and|but)\s+)?|\s+(?:and|but)\s+)(?=(?:(?:also|now|currently|not|originally|a|an|i'm)\s+)*"
    r"(?:an? |from |based |living |born |married|single|divorced|engaged|widowed|allergic|vegan|vegetarian"
    r"|pescatarian|\d{1,3}\b|originally|working|lactose|diabetic|colou?r|deaf|blind|dyslexic"
    r"|gluten|halal|kosher"
    r"|intolerant|not |into |on |in my |usually |only |using |coeliac|celiac|asthmatic|epileptic"
    r"|autistic|self-employed"
    r"|retired|unemployed|mum |mom |dad |father |mother |currently |temporarily ))",
    re.IGNORECASE,
)
_OWNED = re.compile(
    r"(?:\s*,\s*(?:and\s+)?|\s+and\s+)(?=(?:an?|two|three|four|\d|no|type)\s+(?!son\b|daughter\b"
    r"|boy\b|girl\b|half))",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|might|may be|not sure|could be|i think|i guess|kinda"
    r"|kind of|sort of)\b",
    re.IGNORECASE,
)
_HEDGE_WORDS = word_set(
    "maybe perhaps probably possibly might may sure could think guess kinda kind sort believe suppose"
)
_ASKING = re.compile(
    r"(?:what|how|why|where|which|who|when|whether|is|are|am|was|were|do|does|did|has|have|should"
    r"|shall|may|isn't|aren't|don't you|didn't"
    r"|if|unless|in case|suppose|can i|could i|would i|will i|can my|can we|any idea|do you know|guess)\b",
    re.IGNORECASE,
)
_POLITE_QUESTION = re.compile(
    r"(?:hey |hi |ok |so |please |also |and )*(?:can|could|would|will) you\b|(?:do|would) you mind", re.IGNORECASE
)
_TELEGRAPHIC = re.compile(
    r"(?:live in|live near|work (?:as|at|for)|can't (?:eat|have|drink|stand)|don't (?:eat|drink)"
    r"|was born|grew up|never (?:eat|drink))\b",
    re.IGNORECASE,
)
_AS = re.compile(
    r"as (?:(?P<role>an? (?!\w+ of (?:fact|result|rule|matter)|result\b|rule\b|matter\b|start\b"
    r"|side\b|note\b|reminder\b|reference\b|kid\b|child\b|test\b|gift\b|joke\b|bonus\b"
    r"|example\b)[\w -]{3,80})"
    r"|(?:someone|somebody|a person) (?:who|that)(?P<verb> ?\w+|'s) (?P<rest>.+))",
    re.IGNORECASE,
)
_SET = re.compile(
    r"(?:change|update|set|correct|edit|switch) my (?P<noun>[\w' -]{2,30}?) (?:from .{1,40}? )?to (?P<v>.+)"
    r"|my (?P<changed>[\w' -]{2,30}?) (?:has |have |just |recently )*changed (?:from .{1,40}? )?to (?P<now>.+)",
    re.IGNORECASE,
)
_FORGETTING = re.compile(r"(?:please )?(?:forget|delete|erase|remove|clear)\b", re.IGNORECASE)
_NOUN = re.compile(r"my [\w'-]+(?: [\w'-]+)?", re.IGNORECASE)
_FREQUENCY = re.compile(r"(?:always|never)\b", re.IGNORECASE)
_SUBJECT = re.compile(
    r"(?:i|i'm|i've|i'd|we|we're|we've|they|they're|he|he's|she|she's|it|it's|you|you're|that"
    r"|that's|this|there|my|our|her|his|their|your|the"
    r"|these|those|some|people)\b",
    re.IGNORECASE,
)
"""Whose "always …" follows is told, not ordered: "they are kind and always help"."""
_FIRST_PERSON_FORMS = {"has": "have", "doesn't": "don't", "does": "do", "can't": "can't"}
_CHANGED = re.compile(
    r"(?:my|the) (?P<a>[\w' -]{2,30}?) (?:(?:has |have |just |recently )*changed|went (?:up|down)"
    r"|is (?:wrong|outdated|out of date|different now)|isn't .+|used to be .+|was"
    r" .+)"
    r"|(?:i(?:'ve)? )?(?:just |recently )?(?:changed|updated|got a new|switched) (?:my )?(?P<b>[\w' -]{2,30})$",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"(?:it's|it is|that's|the new one is|it should be|now it's) (?:now |actually )?(?P<v>.+?)(?:"
    r" now)?$",
    re.IGNORECASE,
)
_COUPLE = re.compile(
    (
        rf"\b(?:my (?:{'|'.join(sorted(vocabulary.RELATIONSHIPS))})(?:,? [A-Z]\w+,?)? and i|me and my "
        rf"(?:{'|'.join(sorted(vocabulary.RELATIONSHIPS))})(?:,? (?-i:[A-Z])\w+,?)?)\b"
    ),
    re.IGNORECASE,
)
_TODAY = re.compile(r"\b(?:today|tonight|right now|this time|this once|for now|at the moment|just now|this week)\b")
_FOR_ONCE = re.compile(
    r"(?:for|in|on|just for) (?:this|that|the next|these|my next|one) |at the moment|right now"
    r"|this (?:week|month|time|weekend|morning|evening|summer)"
    r"|today|tonight|tomorrow|yesterday|just this once|when i was|back (?:in|when|then)|years ago"
    r"|as a (?:kid|child|teenager)|in (?:19|20)\d\d$|(?:last|next) (?:week|month|night|weekend)",
    re.IGNORECASE,
)
_CONDITION_OF_YOU = re.compile(
    r"(?:if|in case|when) (?:you|it|that|this|relevant|needed|possible|anyone)", re.IGNORECASE
)


def statements_of(text: str, words: set[str]) -> Iterator[Statement]:
    """The statements of what a user says in the first person or asks for; questions and suppositions left out.

    `words` are the text's own, folded: checks are skipped without their words.
    """
    without_capitals = text == text.lower()
    sentences = _SENTENCE.split(canonical(text, words))
    said = (sentence for sentence in sentences if not vocabulary.CUES.isdisjoint(words_of(sentence.lower())))
    ways = ways_for(words)
    each = chain.from_iterable(_of_sentence(sentence, words, ways) for sentence in said)
    for statement in islice(each, MAX_STATEMENTS):
        yield replace(statement, lower=True) if without_capitals else statement


def _of_sentence(sentence: str, words: set[str], ways: tuple[Way, ...]) -> Iterator[Statement]:
    asked = sentence.rstrip().endswith("?")
    if not vocabulary.RELATIONSHIPS.isdisjoint(words):
        sentence = _COUPLE.sub("we", sentence)
    meant = sentence[: supposed_from(sentence.lower(), words)].rstrip(".!?;\u2026 ")
    whole = lead_off(" ".join(meant.split()))
    passing = _TODAY.search(whole.form.lower()) is not None
    for led in _meant(whole, asked=asked):
        weight = HEDGED if not _HEDGE_WORDS.isdisjoint(words) and _HEDGE.search(led.form) else led.weight
        if ways and (forms := plainly(led.form, ways)):
            yield from (
                Statement(form, weight, led.corrects, led.standing, led.condition, passing, said=led.form)
                for form in forms
            )
            continue
        for piece in _pieces(led.form):
            if ways and piece != led.form and (forms := plainly(piece, ways)):
                yield from (
                    Statement(form, weight, led.corrects, led.standing, led.condition, passing, said=piece)
                    for form in forms
                )
            else:
                yield Statement(piece, weight, led.corrects, led.standing, led.condition, passing)


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
        if changed := _CHANGED.match(form):
            named = changed["a"] or changed["b"]
        elif named and (now := _NOW.match(form)):
            form, corrects, named = f"my {named} is {now['v']}", True, ""
        if _ASKING.match(form):
            if not last and _asks_on(form, asked=asked):
                return
            continue
        if goes_on and _FREQUENCY.match(form) and _SUBJECT.match(clauses[n - 1][0]):
            continue
        if not form or (last and asked and not polite and not _POLITE_QUESTION.match(clause)):
            continue
        if not last and _FOR_ONCE.match(form):
            return
        yield Led(form, led.weight if n else min(whole.weight, led.weight), corrects, standing, polite, condition)


def _asks_on(form: str, *, asked: bool) -> bool:
    """Whether what follows a question's or a condition's opening is asked or supposed too."""
    return not _CONDITION_OF_YOU.match(form) and (asked or form.lower().startswith(("if ", "unless ")))


def _clauses(sentence: str) -> Iterator[tuple[str, bool]]:
    """Clauses, and whether "and" or "but" goes on with the subject of the one before."""
    end, goes_on = 0, False
    for match in _CLAUSE.finditer(sentence.lower()):
        if clause := sentence[end : match.start()].strip():
            yield clause, goes_on
        end, goes_on = match.end(), "and" in match[0] or "but" in match[0]
    if clause := sentence[end:].strip():
        yield clause, goes_on


def _in_first_person(form: str) -> str:
    """With the subject that is left out: "live in Oslo", "as a vegan", "as someone who lives in Porto"."""
    if _TELEGRAPHIC.match(form):
        return f"I {form}"
    if revised := _SET.match(form):
        return f"my {revised['noun'] or revised['changed']} is {revised['v'] or revised['now']}"
    role = _AS.match(form)
    if role is None:
        return form
    if role["role"]:
        return f"I'm {role['role']}"
    verb = role["verb"].strip().lower()
    if verb in {"is", "'s"}:
        return f"I'm {role['rest']}"
    return f"I {_FIRST_PERSON_FORMS.get(verb, verb.removesuffix('s'))} {role['rest']}"


def _pieces(clause: str) -> Iterator[str]:
    """Statements of a clause: "I'm a nurse and from Bergen" says two things of its subject."""
    subject = clause[:4].lower()
    if not subject.startswith(("i ", "i'm ", "i've", "i'd ", "i'll")):
        yield clause
        return
    first, *elided = _ELIDED.split(clause)
    for elided_part in (first, *(f"I {rest}" for rest in elided)):
        part = f"I'm {elided_part[5:]}" if elided_part[:5].lower() == "i am " else elided_part
        if part[:4].lower() == "i'm ":
            head, *rest = _PIECE.split(part)
            yield head
            yield from (f"I'm {piece}" for piece in rest)
        elif part[:7].lower() == "i have ":
            head, *rest = _OWNED.split(part)
            yield head
            yield from (f"I have {piece}" for piece in rest)
        else:
            yield part
