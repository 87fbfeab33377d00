"""Typed statements of a message of project talk, by rules (project memory, Fact Extraction): the entry of this package.

`spoken` leaves what the speaker says, as clauses with hasty spellings written out; the tables `decisions` and
`statements` say which type a clause is and how surely, `doubts` lower that, `subjects` say what it is about,
`proposals` turn "yes, let's do that" into what was proposed. English; measured by `turntide lab eval extraction`.

| type | source wording | confidence | beyond it |
|---|---|---|---|
| decision | decided, chose, selected, went with | 0.8 | we'll …, we're closing …, booked, X moves to Y |
| preference | prefer, like, want, need | 0.7 | rather, fan of, please no …, easier for me |
| constraint | must, should, cannot, can't, need to | 0.7 | has to, not allowed, at most, no … in …, due |
| goal | goal, objective, aim, target | 0.8 | want … by May, hope to, the point of … is |
| entity | | 0.75 | X is our …, our … is X, X runs the … |
| procedure | | 0.75 | to …, run …; first … then …; when …, restart … |
| fact | | 0.75 | the API runs on …, we have 3 …, the deadline is … |

Hedges that make a statement less sure than its wording: each has a name and a factor on the confidence.

Questions are no statements at all (`spoken`). Several doubts multiply. With the source confidences each of them leaves
a statement below `long_term.promote_from`, so it waits for somebody to promote it.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec import Struct

from models.events.base import Role
from models.events.project_items import MemoryType
from models.language.contradiction import is_revision, matter_of
from models.language.facts.statements import plain
from models.language.notable import clipped, is_barred
from models.language.statements.spoken import MAX_SENTENCE_CHARS, Clause, clauses_of, sentences_of
from models.language.statements.subjects import StatementSubject, about
from models.text.summary import SENTENCE
from models.text.tables import PatternTables, by_way
from models.text.words import word_set, words_of

_DOUBTS = PatternTables("statements_patterns").section("doubts")

FACTORS: Mapping[str, float] = {
    "negated": 0.3,  # "we have not decided", "no one chose"
    "hypothetical": 0.5,  # "if we chose", "we could use", "maybe"
    "opinion": 0.7,  # "I think we should"
    "third_person": 0.6,  # "they chose", "the client wants"
    "reported": 0.6,  # "the docs say we must"
    "past": 0.4,  # "we used to prefer"
    "assistant": 0.6,  # the assistant says what the team decided
    "unclear": 0.7,  # "we decided to use it": does not stand alone
}
_MAY = re.compile(r"\bmay (?!\d)(?!$)[a-z]|\bwe may\b")
_MAY_NOT = re.compile(r"\bmay (?:not|only)\b|^under no")
_IF = re.compile(r"\b(?:if|unless)\b(?! (?:possible|needed|necessary|you can))")
_WISHED = re.compile(r"\bi(?:'d| would) (?:\w+ )?(?:like|love|need)\b")
"""Of the moment, and for one person: "I'd like to plant herbs"."""
_OPINION = re.compile(r"\bi (?:think|believe|feel|assume|suspect|reckon)\b|\bin my opinion\b|\bimho\b")
_NEGATION = re.compile(r"n't\b|\b(?:not|never|nobody|none|no one|nor|neither|undecided|yet to|hardly|without)\b")
_DENIED = re.compile(r"\b(?:is|are|was|were) (?:not|never)\b|\b(?:isn't|aren't|wasn't|weren't|no longer)\b")
_UNMET = re.compile(r"\bshould\b.* but (?:it|they|instead|nothing|i get|the \w+ (?:is|was))\b")
"""What ought to be and is not: a report of a fault, no requirement."""


def doubts_of(clause: Clause, type_: MemoryType, match: re.Match[str]) -> list[str]:
    """Names of what makes a statement doubtful, as far as its wording shows it.

    Args:
        clause: Where it was found.
        type_: What the clause would say.
        match: Of the rule that it follows.
    """
    lower = clause.lower
    before, said = lower[: match.start()], lower[match.start() : match.end()]
    doubts = {
        "third_person": match.groupdict().get("other"),
        "negated": _negated(type_, before, said, clause.sentence),
        "hypothetical": _supposed(clause, type_),
        "opinion": type_ is not MemoryType.PREFERENCE and _OPINION.search(lower),
        "reported": type_ is not MemoryType.PROCEDURE and _DOUBTS.REPORTED.search(lower, 0, match.end()),
        "past": _DOUBTS.PAST.search(lower),
        "unclear": _DOUBTS.PRONOUN.search(lower),
    }
    return [doubt for doubt, found in doubts.items() if found]


def _negated(type_: MemoryType, before: str, said: str, sentence: str) -> bool:
    """Whether the saying itself is denied; what is decided, wanted or due may well be a "not"."""
    if type_ is MemoryType.DECISION:
        choosing = re.search(r"won't|will not|going to|not \w+ing|let's not|aren't", said)
        return _NEGATION.search(before.rpartition(",")[2]) is not None or (
            choosing is None and _NEGATION.search(said) is not None
        )
    if type_ is MemoryType.PREFERENCE:
        return re.search(r"(?:don't|do not|doesn't|didn't|not|never) (?:\w+ )?needs?\b", said) is not None
    if type_ is MemoryType.CONSTRAINT:
        return _DOUBTS.NO_NEED.search(said) is not None or (_UNMET.search(sentence) is not None)
    if type_ in {MemoryType.GOAL, MemoryType.ENTITY}:
        return _NEGATION.search(before) is not None or _DENIED.search(said) is not None
    return False


def _supposed(clause: Clause, type_: MemoryType) -> bool:
    conditional = type_ in {MemoryType.CONSTRAINT, MemoryType.PROCEDURE}
    lower, sentence = clause.lower, clause.sentence
    supposed = _DOUBTS.SUPPOSED.search(lower)
    # "We want to find out whether it works" is a goal all the same.
    if supposed is not None and type_ is MemoryType.GOAL and supposed[0] == "whether":
        supposed = None
    if (
        supposed
        or _DOUBTS.ASKED.search(sentence)
        or (_MAY.search(lower) and not (type_ is MemoryType.CONSTRAINT and _MAY_NOT.search(lower)))
    ):
        return True
    would = _DOUBTS.WOULD.search(lower) is not None
    if type_ is MemoryType.PREFERENCE:
        return (_IF.search(sentence) or _WISHED.search(lower) or _DOUBTS.SUPPOSED_ALL.match(sentence)) is not None
    if conditional:
        return would or (
            _DOUBTS.SUPPOSED_ALL.match(sentence) is not None and not re.match(r"\W*(?:if|once|until)\b", sentence)
        )
    return would or _IF.search(lower) is not None or _DOUBTS.SUPPOSED_ALL.match(sentence) is not None


_RE = PatternTables("statements_patterns").section("extraction")

MAX_REPLY_CHARS = 160
"""A longer reply says more than that it agrees."""
_BARE = frozenset({"thanks", "thank you", "please", "right", "fine", "so", "then", "great", "perfect", "sure thanks"})
"""These alone agree to nothing."""
_DOING = by_way("go=going split=splitting deploy=deploying drop=dropping run=running put=putting cut=cutting")
_GERUND = re.compile(r"(?P<stem>[a-z]+?)ing\b(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_DROPPED_E = ("us", "at", "ov", "as", "ar", "uc", "ag", "in", "iz")
"""Ends of stems that lost their last letter to the gerund."""


def agrees(reply: str) -> bool:
    """Whether a message says nothing but that it takes up what was proposed.

    >>> agrees("Yes, let's do that."), agrees("Yes, but is it fast?"), agrees("Thanks!")
    (True, False, False)
    """
    said = reply.strip()
    if not said or len(said) > MAX_REPLY_CHARS or "?" in said:
        return False
    return _RE.YES.match(plain(said)) is not None and said.strip(" .,!").lower() not in _BARE


def proposal_in(message: str) -> str | None:
    """The one thing that a message proposes, as an order: "Use PostgreSQL for this use case". None if none, or several.

    >>> proposal_in("I recommend PostgreSQL for this use case. It is robust.")
    'Use PostgreSQL for this use case'
    >>> proposal_in("I would use Vue. You should also drop IE.") is None
    True
    """
    asked = [each.strip() for each in SENTENCE.findall(plain(message)[-2_000:]) if each.rstrip().endswith("?")]
    found = {what for sentence in (*sentences_of(message), *asked[-1:]) if (what := _proposed(sentence))}
    return found.pop() if len(found) == 1 else None


def _proposed(sentence: str) -> str | None:
    match = _RE.ADVICE.search(sentence) if len(sentence) <= MAX_SENTENCE_CHARS else None
    if match is None:
        return None
    what = re.split(r": |; |, (?:because|since|as|but|so|is|if) ", match["what"].strip(" .!?:"), maxsplit=1)[0].strip()
    what = re.sub(r"^(?:also|now|then|just|simply|to) ", "", what)
    if not what or _RE.TALK.match(what):
        return None
    if _RE.VERBS.match(what) is None or what.lower().startswith(("using ", "moving ")):
        gerund = _GERUND.match(what)
        if gerund is not None and gerund["rest"].startswith(" "):
            verb = _DOING.get(f"{gerund['stem']}ing".lower(), _stem(gerund["stem"].lower()))
            what = f"{verb}{gerund['rest']}"
        elif not _RE.VERB_FOLLOWS.search(sentence, 0, match.start("what")):
            what = f"use {what}"
    return what[:1].upper() + what[1:]


def _stem(stem: str) -> str:
    """The verb of a gerund: `us` is "use", `migrat` "migrate"; others stand as they are."""
    return f"{stem}e" if stem.endswith(_DROPPED_E) else stem


SEED_DECISION = 0.8
"""Project memory, Automatic Extraction."""
MAX_FOUND = 32
"""Of one message."""
MAX_CONTENT_CHARS = 300
_FEWEST_WORDS, _MOST_WORDS = 2, 60
_VALUED = frozenset({MemoryType.DECISION, MemoryType.CONSTRAINT, MemoryType.GOAL, MemoryType.FACT})
"""Of a matter that has a date, a sum or a place."""
_OF_ASSISTANTS = frozenset({MemoryType.DECISION, MemoryType.GOAL})
"""What an assistant may say for the team; anything else of it is advice."""
_NO_NAMES = word_set(
    "it this that there he she they here what which who everything nothing something someone the a an one all these "
    "those my your his her their our we i you today tomorrow now nobody everyone maybe perhaps"
)


_NOTED = re.compile(r": | -> | => | = | - ")
_DIGIT = re.compile(r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|twenty)\b")
_ORDER = ("procedure", "decision", "goal", "constraint", "preference", "entity", "fact", "noted")
"""Tables; the last has what a note like "Roof: clay tiles" leaves, as decisions."""
_VERB_WITHIN = 8
"""Words: a verb stands near the begin."""


class StatementRule(Struct, frozen=True):
    """A clause that matches says something of this type."""

    place: int
    """Of several rules the first counts."""
    type: MemoryType
    confidence: float
    pattern: re.Pattern[str]
    """Searched in the folded clause. Group `other`: whoever speaks of themselves is not this project."""
    named: bool
    """Whether group `name` or `value` must be a name, with a capital letter."""


def _by_word() -> Mapping[str, tuple[StatementRule, ...]]:
    """Rules by each of the words or signs of which a clause holds one."""
    tables = PatternTables("wordings", "decisions", "statements")
    found: dict[str, list[StatementRule]] = defaultdict(list)
    rows = [(name, row) for name in _ORDER for row in tables.rows(name)]
    for place, (name, row) in enumerate(rows):
        words, confidence = row.cells
        type_ = MemoryType.DECISION if name == "noted" else MemoryType(name)
        named = not {"name", "value"}.isdisjoint(row.pattern.groupindex)
        for word in tables.words(words):
            found[word].append(StatementRule(place, type_, confidence, row.pattern, named))
    return {word: tuple(rules) for word, rules in found.items()}


RULES = _by_word()


def signs_of(lower: str, words: list[str]) -> list[str]:
    """What rules are found by beside words: `:` of a note, `#` for a number, `-ing` for a verb in this form.

    >>> signs_of("roof: 40 tiles", ["roof", "40", "tiles"])
    [':', '#']
    """
    signs = [":"] if _NOTED.search(lower) else []
    if _DIGIT.search(lower):
        signs.append("#")
    if any(word.endswith("ing") for word in words[:_VERB_WITHIN]):
        signs.append("-ing")
    return signs


class ExtractedStatement(Struct, frozen=True, kw_only=True):
    """A statement that a message makes."""

    content: str
    """The clause, as it was said but for hasty spellings; stands alone unless `unclear` is among the doubts."""
    type: MemoryType
    confidence: float
    """0-1."""
    category: str = ""
    """`database`, `security`, `schedule` …; empty where nothing tells."""
    subject: str = ""
    """In a fixed form; see `subjects`."""
    tags: list[str] = []
    doubts: list[str] = []
    """What lowered the confidence, see `doubts`."""


def extract(content: str, role: Role, *, context: str = "") -> list[ExtractedStatement]:
    """What a message states, in order; of a long one its head and its tail are looked at.

    Args:
        content: The message.
        role: Who speaks. An assistant's advice states nothing; tools and systems never do.
        context: The message before, of the assistant: what "yes, let's do that" agrees to.

    >>> [found] = extract("We decided to use PostgreSQL.", Role.USER)
    >>> found.type.value, found.confidence, found.subject, found.content
    ('decision', 0.8, 'database', 'We decided to use PostgreSQL')
    >>> extract("Should we use PostgreSQL?", Role.USER)
    []
    >>> extract("Yes, let's do that.", Role.USER, context="I recommend PostgreSQL.")[0].content
    'Use PostgreSQL'
    """
    if role not in {Role.USER, Role.ASSISTANT}:
        return []
    if role is Role.USER and context and agrees(content):
        return _agreed(context)
    found: dict[tuple[MemoryType, str], ExtractedStatement] = {}
    for sentence in sentences_of(content):
        for each in _of_sentence(sentence, role):
            found.setdefault((each.type, each.content), each)
            if len(found) == MAX_FOUND:
                return list(found.values())
    return list(found.values())


def unread(content: str, *, context: str = "") -> list[str]:
    """Sentences of a user's message in which no rule finds a statement, however doubtful: what a second reader gets.

    >>> unread("We chose Vue. Calling it: two nodes. Is it fast?")
    ['Calling it: two nodes.']
    """
    if context and agrees(content):
        return []
    return [
        sentence
        for sentence in sentences_of(content)
        if _FEWEST_WORDS <= len(words_of(sentence.lower())) <= _MOST_WORDS
        and not any(_of_sentence(sentence, Role.USER))
        and not is_revision(sentence)
        and not is_barred(sentence)
    ]


def stated(sentence: str, type_: MemoryType, confidence: float) -> ExtractedStatement:
    """A statement that somebody else found: content and subject as those of the rules have.

    >>> found = stated("Postgres it is!", MemoryType.DECISION, 0.9)
    >>> found.content, found.confidence, found.subject
    ('Postgres it is', 0.9, 'database')
    """
    clause = sentence.rstrip(" .,;:!")
    return _found(clause, type_, confidence, _subject_of(clause, clause.lower(), type_), [])


def _subject_of(text: str, lower: str, type_: MemoryType, opener: str = "") -> StatementSubject:
    of = about(lower, type_, opener=opener)
    return of._replace(subject=matter_of(text)) if not of.subject and type_ in _VALUED else of


def _agreed(context: str) -> list[ExtractedStatement]:
    proposed = proposal_in(context)
    if proposed is None or is_barred(proposed):
        return []
    of = about(proposed.lower(), MemoryType.DECISION)
    return [_found(proposed, MemoryType.DECISION, SEED_DECISION, of, [])]


def _of_sentence(sentence: str, role: Role) -> Iterator[ExtractedStatement]:
    words = words_of(sentence.lower())
    if not _FEWEST_WORDS <= len(words) <= _MOST_WORDS:
        return
    signs = signs_of(sentence.lower(), words)
    if RULES.keys().isdisjoint(words) and not signs:
        return
    barred: bool | None = None
    for clause in clauses_of(sentence):
        in_clause = words_of(clause.lower)
        for rule in _rules_for([*in_clause, *signs_of(clause.lower, in_clause)]):
            match = rule.pattern.search(clause.lower)
            if match is None or (rule.named and not _is_name(clause.text, match)):
                continue
            if role is Role.ASSISTANT and rule.type not in _OF_ASSISTANTS:
                break
            barred = is_barred(sentence) if barred is None else barred
            if barred:
                return
            doubts = doubts_of(clause, rule.type, match)
            if role is Role.ASSISTANT:
                doubts.append("assistant")
            of = _subject_of(clause.text, clause.lower, rule.type, clause.opener)
            yield _found(clause.text, rule.type, rule.confidence, of, doubts)
            break


def _rules_for(words: list[str]) -> list[StatementRule]:
    """Rules that one of the words may follow, in order."""
    rules = {rule.place: rule for word in words if word in RULES for rule in RULES[word]}
    return [rules[place] for place in sorted(rules)]


def _is_name(text: str, match: re.Match[str]) -> bool:
    """Whether what stands where a name must stand is one."""
    group = next(name for name in ("name", "value") if name in match.re.groupindex)
    name = text[match.start(group) : match.end(group)]
    return name[:1].isupper() and name.lower().split(maxsplit=1)[0] not in _NO_NAMES


def _found(
    text: str, type_: MemoryType, confidence: float, of: StatementSubject, doubts: list[str]
) -> ExtractedStatement:
    for doubt in doubts:
        confidence *= FACTORS[doubt]
    content = " ".join(text.split())
    return ExtractedStatement(
        content=clipped(content[:1].upper() + content[1:], MAX_CONTENT_CHARS),
        type=type_,
        confidence=round(confidence, 3),
        category=of.category,
        subject=of.subject,
        tags=of.tags,
        doubts=doubts,
    )
