"""A message as statements: clauses with their subject, without openers, and the weight of each.

Attribution filter: code, quotes, pastes, fiction, tasks, hypotheticals, voices that do not speak for the user.

Openers of a statement ("remember that", "I think", "from now on"), and one form for each spelling of a word.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from models.language.facts import vocabulary
from models.language.facts.vocabulary import WORDS
from models.text.tables import PatternTables, by_way, read_table
from models.text.words import HEAD_CHARS, TAIL_CHARS, word_set, words_of

_ATTRIBUTION = PatternTables("facts_patterns").section("attribution")

MAX_LINES = 30
"""A message with more lines that are not blank counts as a pasted document."""
MAX_LIST_ITEMS = 5
"""A list with more items counts as pasted."""
MAX_QUOTED_WORDS = 3
"""Up to this many words in quotes are a name or a term, more are another person's speech."""

_QUOTES = str.maketrans("\u2019\u2018\u02bc\u00b4\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014\u00a0", '\'\'\'\'"""""-- ')
FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|my|me|we|you)\b", re.IGNORECASE)
_ITEM = re.compile(r"[ \t]*(?:[-*\u2022+]|\d{1,3}[.)])[ \t]+\S")
_TASK_WORDS = PatternTables("words").word_set("TASK_WORDS")
_SALUTATIONS = ("Dear ", "To whom", "Subject:", "From:")
"""Openings of a letter's first line."""
_TO_THE_USER = ("to ", "stop ", "avoid ", "quit ", "never ", "always ", "don't ")
_OWN_SPEECH = ("i ", "i've ", "i just ", "i already ", "i only ", *_TO_THE_USER)
"""After these the user speaks, or is addressed."""


def plain(content: str) -> str:
    """The text to analyse, case preserved: head and tail of a long one, plain quotes, no invisible characters."""
    if len(content) > HEAD_CHARS + TAIL_CHARS:
        content = f"{content[:HEAD_CHARS]}\n{content[-TAIL_CHARS:]}"
    if not content.isascii():
        content = unicodedata.normalize("NFKC", content).translate(_QUOTES)
        if not content.isprintable():
            content = "".join([c for c in content if c == "\n" or c.isprintable()])
    return content


def own_words(text: str, words: set[str]) -> str:
    """The text without code, quotes, transcripts and pasted lines, and text after the start of a task or a play.

    `words` are the text's own, folded.
    """
    if "```" in text or "~~~" in text:
        text = FENCE.sub("\n", text)
    if "\n" in text:
        text = _own_lines(text)
    if '"' in text or "'" in text or "`" in text:
        text = _ATTRIBUTION.SPEECH.sub(_term, text)
    text = _before(_ATTRIBUTION.FICTION, text)
    return text if _TASK_WORDS.isdisjoint(words) else _before(_ATTRIBUTION.TASK, text)


def supposed_from(lower: str) -> int:
    """Start of a supposition or of reported speech in a folded sentence; its length if there is none."""
    if _ATTRIBUTION.SUPPOSED.search(lower):
        return 0
    reported = (found.start() for found in _ATTRIBUTION.REPORTED.finditer(lower))
    return next((start for start in reported if not lower.endswith(_OWN_SPEECH, 0, start)), len(lower))


def _term(quoted: re.Match[str]) -> str:
    inside: str = quoted[quoted.lastindex or 0]
    if len(inside.split()) > MAX_QUOTED_WORDS or inside[-1] == "," or _FIRST_PERSON.search(inside):
        return '"'
    return inside


def _before(marker: re.Pattern[str], text: str) -> str:
    """The text before the marker's sentence, for a task before its clause, which still counts."""
    found = marker.search(text.lower())
    if found is None:
        return text
    ends = [". ", "! ", "? ", "\n", "; "]
    if marker is not _ATTRIBUTION.FICTION:
        ends += [", ", " - ", " and ", " but "]
    return text[: max(text.rfind(mark, 0, found.start()) for mark in ends) + 1]


def _own_lines(text: str) -> str:
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > MAX_LINES:
        return ""
    spoken = [bool(_ATTRIBUTION.SPEAKER.match(line)) for line in lines]
    if sum(spoken) > 1:
        lines = lines[: spoken.index(True)]
    lines = [line for line in lines if not line.lstrip().startswith(">")]
    coded = [bool(_ATTRIBUTION.CODE.match(line)) for line in lines]
    if sum(coded) > 1:
        lines = [line for line, code in zip(lines, coded, strict=True) if not code]
    cited = next((n for n, line in enumerate(lines) if _ATTRIBUTION.CITED.search(line)), None)
    if cited is not None:
        lines = [line for n, line in enumerate(lines) if n <= cited or not _ITEM.match(line)]
    if sum([bool(_ITEM.match(line)) for line in lines]) > MAX_LIST_ITEMS:
        lines = [line for line in lines if not _ITEM.match(line)]
    letter = next((n for n, line in enumerate(lines) if line.startswith(_SALUTATIONS)), None)
    return "\n".join(lines[:letter])


_FORMS = by_way(read_table("words")["forms"]["WAYS"])
"""Spelling → form; fillers have an empty form."""
_FORM_WORDS = frozenset(way.rpartition("_")[2] for way in _FORMS)
"""Last word of each spelling, as a quick check: most texts have none."""
_OPENERS = PatternTables("facts_patterns", words={"WAYS": [way for way in _FORMS if "_got" not in way]}).section(
    "openers"
)
_ABBREVIATION = re.compile(r"\b(St|Dr|Mr|Mrs|Ms|Prof|Mt)\.(?= )")


def canonical(text: str, words: set[str]) -> str:
    """The text with plain forms, case preserved; `words` are its own, folded.

    >>> canonical("im really into jazz, dont ask", {"im", "really", "into", "jazz", "dont", "ask"})
    "I'm  into jazz, don't ask"
    """
    if "." in text:
        text = _ABBREVIATION.sub(r"\1", text)
    if _FORM_WORDS.isdisjoint(words):
        return text
    return _OPENERS.CANON.sub(lambda found: _FORMS[found[0].lower().replace(" ", "_")], text)


HEDGED = 0.4
"""Factor on the confidence of hedged statements ("I think")."""
_MAX_OPENERS = 8


class Led(NamedTuple):
    """A clause without its openers, and what these say of it."""

    form: str
    weight: float = 1.0
    corrects: bool = False
    standing: bool = False
    polite: bool = False
    condition: str = ""


_CONDITION = re.compile(r"when|if (?!in doubt)|unless|(?:every|each|any) ?time (?:i|you|we)", re.IGNORECASE)
_IMPERATIVES = by_way(read_table("words")["forms"]["IMPERATIVES"])
"""Forms of verbs after "I'd prefer if you" and "would you mind" → imperative."""
_FOR_YEARS = re.compile(r"i've been (work|liv)ing(?= (?:as|at|for|in|near|outside)\b)", re.IGNORECASE)
_FOR_YEARS_FORMS = {"work": "I work", "liv": "I live"}
_SUBJECTS = word_set("i my we he she they it the a an this his her their there it's he's she's they're we're")
_LEADING = PatternTables("words").word_set("LEADING")
"""Second words of openers that begin like a statement."""


def lead_off(clause: str) -> Led:
    """Remove a clause's openers, and return what they say of it."""
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
    if found := _OPENERS.ADVERBS.match(form):
        form = f"{found[1]} {form[found.end() :]}"
    return led._replace(form=form)


def _without_opener(led: Led) -> Led:
    form = led.form
    if found := _OPENERS.CORRECTION.match(form):
        return led._replace(form=form[found.end() :], corrects=True)
    if found := _OPENERS.LEAD.match(form):
        return led._replace(form=form[found.end() :])
    if found := _OPENERS.HEDGE_LEAD.match(form):
        return led._replace(form=form[found.end() :], weight=HEDGED)
    if found := _OPENERS.STANDING_LEAD.match(form):
        condition = found[0].strip(" ,:") if _CONDITION.match(form) else led.condition
        return led._replace(form=form[found.end() :], standing=True, condition=condition)
    if found := _OPENERS.POLITE.match(form):
        verb, _, rest = form[found.end() :].partition(" ")
        return led._replace(form=f"{_IMPERATIVES.get(verb.lower(), verb)} {rest}", polite=True)
    return led


TABLES = {
    name: PatternTables(name, words=WORDS, flags=re.IGNORECASE) for name in ("orders", "identity", "limits", "likings")
}


_GROUP = re.compile(r"<(\w)>")
_WAYS = tuple(
    (row.pattern, tuple(_GROUP.sub(r"\\g<\1>", form) for form in row.cells[0].split(" | ")))
    for table in TABLES.values()
    for row in table.rows("ways")
)
"""Patterns of paraphrases, and the plain statements of each."""


def plainly(form: str) -> tuple[str, ...]:
    """The plain statements of a clause; none if it is no known paraphrase.

    >>> plainly("home is Oslo these days")
    ('I live in Oslo these days',)
    """
    return tuple(again for said in _said_plainly(form) for again in _said_plainly(said) or (said,))


def _said_plainly(form: str) -> tuple[str, ...]:
    for pattern, forms in _WAYS:
        if found := pattern.match(form):
            return tuple(found.expand(template) for template in forms)
    return ()


_RE = PatternTables("facts_patterns", words=vocabulary.WORDS).section("statements")

MAX_STATEMENTS = 64
MAX_STATEMENT_CHARS = 400


class Statement(Struct, frozen=True, gc=False):
    """A clause in canonical form: it begins with its subject ("I", "I'm", "my"), or with an order's verb."""

    text: str
    weight: float = 1.0
    """Factor on the confidence: below 1 after "I think", "maybe"."""
    corrects: bool = False
    """Whether the user corrects an earlier statement."""
    standing: bool = False
    """Whether it is requested from now on."""
    condition: str = ""
    """Condition of an order: "when I ask for code"."""
    passing: bool = False
    """Whether its sentence is about today or this time only."""
    lower: bool = False
    """Whether the user writes without capitals, so that a name need not have one."""
    said: str = ""
    """The original wording, if it differs from the text."""


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
    """A user's statements in the first person and requests, without questions and suppositions.

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
    """Clauses of a sentence that are no question or condition and not for once only; openers apply to later clauses."""
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
    """Whether the clause after the opening of a question or condition belongs to it."""
    return not _RE.CONDITION_OF_YOU.match(form) and (asked or form.lower().startswith(("if ", "unless ")))


def _clauses(sentence: str) -> Iterator[tuple[str, bool]]:
    """Clauses, and whether "and" or "but" continues with the subject of the previous one."""
    end, goes_on = 0, False
    for match in _RE.CLAUSE.finditer(sentence.lower()):
        if clause := sentence[end : match.start()].strip():
            yield clause, goes_on
        end, goes_on = match.end(), "and" in match[0] or "but" in match[0]
    if clause := sentence[end:].strip():
        yield clause, goes_on


def _in_first_person(form: str) -> str:
    """The clause with its omitted subject: "live in Oslo", "as a vegan", "as someone who lives in Porto"."""
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
    """Statements of a clause: "I'm a nurse and from Bergen" contains two."""
    subject = clause[:4].lower()
    if not subject.startswith(("i ", "i'm ", "i've", "i'd ", "i'll")):
        yield clause
        return
    first, *elided = _RE.ELIDED.split(clause)
    for elided_part in (first, *(f"I {rest}" for rest in elided)):
        part = f"I'm {elided_part[5:]}" if elided_part[:5].lower() == "i am " else elided_part
        pieces, goes_on = [part], ""
        if part[:4].lower() == "i'm ":
            pieces, goes_on = _RE.PIECE.split(part), "I'm "
        elif part[:7].lower() == "i have ":
            pieces, goes_on = _RE.OWNED.split(part), "I have "
        yield pieces[0]
        yield from (goes_on + piece for piece in pieces[1:])
