"""Notable sentences of a conversation, for episodes: decisions, preferences, facts, outcomes. By rules.

They are extracted when a segment is compacted, so that a turn costs nothing more, and the best are stored until the
conversation ends. English; in other languages none is found, and the summary represents the conversation.

Questions, suppositions, reported speech, code, pasted text, secrets and orders about the assistant's own rules are
excluded, and so are open decisions. A row of the table `notable` begins with kind, weight, later use, and words of
which a sentence has at least one; a negative weight marks statements valid despite a hedge: "it crashes if I scroll".
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from models.events.app import NotableKind, NotableSentence
from models.events.base import Role
from models.language.facts.statements import own_words, plain
from models.language.retelling import is_order, led_off
from models.policy.app import AppPolicy
from models.state.buffer import BufferedTurn
from models.state.parts import Parts
from models.text.features import QUESTION_OPENING, features_of, is_refusal, rewrites_rules
from models.text.summary import SENTENCE, Said, ends_of, names_something, sentences_in
from models.text.tables import PatternTables
from models.text.words import fold_text, word_set, words_of, words_of_each

_RE = PatternTables("statements_patterns").section("notable")

DONE = 0.3
"""Largest later use of a row for completed actions: a day that such a sentence names is in the past."""
PART = "n"
"""Name of the part of a session's state with its notable sentences."""
_FEWEST_WORDS, _MOST_WORDS = 3, 60
_LONG_CHARS = 150
_NUMBER, _NAME, _LONG, _CORRECTED = 0.05, 0.05, -0.1, 0.08
"""Added to the weight of a sentence's kind: it has a number, has a name, is long, corrects something."""
_DIGIT = re.compile(r"\d")
_CAPITALISED = re.compile(r"(?<=[a-z,] )[A-Z]\w")
_SECRET_WORDS = word_set(
    "password passwords passcode passphrase pin cvv cvc otp key keys secret token ssn security card iban"
)
_KEY = re.compile(r"(?:\d[ -]?){12,}|\b[\w-]{32,}\b")
_POLITE_IF = re.compile(r",? if (?:possible|available|you can|at all possible|needed|necessary|that's ok(?:ay)?|not)\b")
_MAY = re.compile(r"\bmay(?= [a-z])|^May(?= [a-z])")
"""The verb "may", not the month, so matched in the original case."""
_WONT = re.compile(r"\s*(?:no[,.]\s+)?i (?:won['\u2019]t|can['\u2019]t|cannot|will not)[.,]", re.IGNORECASE)


class NotableRule(msgspec.Struct, frozen=True):
    """A sentence that matches is notable."""

    place: int
    """Order of the rules: the first match counts."""
    kind: NotableKind
    weight: float
    use: float
    """Later use of such a sentence, 0-1; low for completed actions."""
    pattern: re.Pattern[str]
    """Searched in the folded sentence without its openers."""
    loose: re.Pattern[str]
    """The same pattern at any position: searched before openers are removed."""
    hedged: bool


Rules = Mapping[str, list[NotableRule]]


def _by_word(tables: PatternTables, role: Role) -> Rules:
    """Rules by each of their words."""
    start = tables.piece("START")
    found: dict[str, list[NotableRule]] = defaultdict(list)
    for place, row in enumerate(tables.rows(role)):
        kind, weight, use, words = row.cells
        loose = re.compile(row.pattern.pattern.replace(start, r"\b").replace("^", r"\b"))
        rule = NotableRule(place, NotableKind(kind), abs(weight), use, row.pattern, loose, weight < 0)
        for word in dict.fromkeys(word.partition("_")[0] for word in tables.words(words)):
            found[word].append(rule)
    return dict(found)


_TABLES = PatternTables("notable")
RULES = {role: _by_word(_TABLES, role) for role in (Role.USER, Role.ASSISTANT)}
"""Rules by role of the speaker, and by word; none for tools and systems."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[NotableKind, Role, int, str, float]]).decode


def notables_of(
    turns: Sequence[BufferedTurn], policy: AppPolicy, said: Sequence[Said] | None = None
) -> list[NotableSentence]:
    """Notable sentences of some turns of users and assistants, in order.

    Args:
        turns: In order.
        policy: Limit of a sentence (`notable_chars`).
        said: The turns' sentences (`text.summary.sentences_in`), if the caller has them.
    """
    likely: dict[int, None] = {}
    for place, sentence, words in sentences_in([turn.content for turn in turns]) if said is None else said:
        rules = RULES.get(turns[place].role)
        if rules is not None and place not in likely and _may_be_notable(sentence, words, rules):
            likely[place] = None
    found: list[NotableSentence] = []
    for place in likely:
        notables = list(_of_turn(turns[place], policy))
        refused = notables and place + 1 < len(turns) and refuses(turns[place + 1])
        found += [notable for notable in notables if not (refused and asks_for(notable))]
    return found


def _may_be_notable(sentence: str, words: Sequence[str], rules: Rules) -> bool:
    # Most sentences are not notable, and a close look costs more than their turn's fold.
    if rules.keys().isdisjoint(words) or sentence[-1] == "?":
        return False
    folded = fold_text(sentence)
    return any(rule.loose.search(folded) for word in words if word in rules for rule in rules[word])


def tells_something(sentence: str, words: Sequence[str]) -> bool:
    """Whether a sentence with these folded words names something, or could be notable from a user.

    >>> [tells_something(said, said.lower().split()) for said in ("we decided to sail", "and so on")]
    [True, False]
    """
    return names_something(sentence, words) or _may_be_notable(sentence, words, RULES[Role.USER])


@lru_cache(maxsize=1_024)
def use_of(sentence: str, role: Role) -> float:
    """Later use of a notable sentence, 0-1; 0 for any other.

    >>> [use_of(said, Role.USER) for said in ("I prefer tea.", "I bought a kettle.", "It rains.")]
    [0.9, 0.2, 0.0]
    """
    rule = _followed(led_off(sentence), _rules_for(words_of(fold_text(sentence)), RULES.get(role, {})))
    return 0.0 if rule is None else rule.use


def refuses(turn: BufferedTurn) -> bool:
    """Whether an assistant's turn declines a request."""
    return turn.role is Role.ASSISTANT and (_WONT.match(turn.content) is not None or is_refusal(turn.content))


def asks_for(notable: NotableSentence) -> bool:
    """Whether a user orders or requests something: if that is refused, it is no memory."""
    said = led_off(notable.text)
    if notable.role is not Role.USER:
        return False
    return is_order(said) or features_of(said).imperative or _RE.WISH.search(said.lower()) is not None


def _rules_for(words: Iterable[str], rules: Rules) -> list[NotableRule]:
    """Rules for at least one of the words, in order."""
    found = {rule.place: rule for word in words if word in rules for rule in rules[word]}
    return [found[place] for place in sorted(found)]


def _of_turn(turn: BufferedTurn, policy: AppPolicy) -> Iterator[NotableSentence]:
    content, rules = plain(ends_of(turn.content)), RULES[turn.role]
    if turn.role is Role.USER or "```" in content:
        content = own_words(content, set(words_of(content.lower())))
    sentences = [sentence for sentence in SENTENCE.findall(content) if sentence[-1] != "?"]
    for sentence, words in zip(sentences, words_of_each(sentences), strict=True):
        if not _FEWEST_WORDS <= len(words) <= _MOST_WORDS or not (may_be := _rules_for(words, rules)):
            continue
        said = led_off(sentence)
        rule = _followed(said, may_be)
        if rule is not None and len(said.split()) >= _FEWEST_WORDS and not _is_barred(sentence.lower(), set(words)):
            text = clipped(" ".join(sentence.split()).strip(" -*>#"), policy.notable_chars)
            yield NotableSentence(rule.kind, turn.role, turn.turn, text, _weight(rule, said))


def _followed(said: str, rules: Sequence[NotableRule]) -> NotableRule | None:
    """The first rule that the sentence matches."""
    folded = said.lower()
    firm = _POLITE_IF.sub("", folded) if " if " in folded else folded
    followed = [rule for rule in rules if rule.pattern.search(firm)]
    if not followed or QUESTION_OPENING.match(folded) or _RE.OF_OTHERS.match(folded):
        return None
    supposed = _RE.SUPPOSED.search(firm)
    if supposed is not None and supposed.start() == 0:
        return None
    if supposed is None and _RE.HEDGED.search(firm) is None and _MAY.search(said) is None:
        return followed[0]
    return next((rule for rule in followed if rule.hedged), None)


def is_barred(sentence: str) -> bool:
    """Whether a sentence is a secret or an order about the assistant's own rules: neither may enter another session.

    >>> is_barred("My password is hunter2."), is_barred("I forgot my password.")
    (True, False)
    """
    folded = sentence.lower()
    return _is_barred(folded, set(words_of(folded)))


def _is_barred(folded: str, words: set[str]) -> bool:
    secret = not _SECRET_WORDS.isdisjoint(words) and _RE.SECRET.search(folded) is not None
    return secret or _KEY.search(folded) is not None or rewrites_rules(folded, words)


def _weight(rule: NotableRule, said: str) -> float:
    weight = rule.weight + _NUMBER * (_DIGIT.search(said) is not None) + _NAME * (_CAPITALISED.search(said) is not None)
    weight += _LONG * (len(said) > _LONG_CHARS) + _CORRECTED * corrects(said)
    return round(min(max(weight, 0.0), 1.0), 2)


def corrects(said: str) -> bool:
    """Whether a sentence says that it replaces an earlier one."""
    return _RE.CORRECTION.search(said.lower()) is not None


def clipped(text: str, chars: int) -> str:
    """Limit a text to so many characters, cut between words; cut text ends with an ellipsis.

    >>> clipped("one two three", 9), clipped("one two", 9), clipped("x" * 20, 9)
    ('one two…', 'one two', 'xxxxxxxx…')
    """
    if len(text) <= chars:
        return text
    head = text[:chars]
    cut = head.rfind(" ")
    return (head[:cut] if cut > 0 else text[: chars - 1]).rstrip(" .,;:-") + "…"


class Notables:
    """The best sentences so far, in one part of a session's state, written only when they change."""

    def __init__(self, parts: Parts, policy: AppPolicy) -> None:
        self._parts = parts
        self._policy = policy

    def all(self) -> list[NotableSentence]:
        """In order of turn."""
        data = self._parts.get(PART)
        return [] if data is None else [NotableSentence(*fields) for fields in _decode(data)]

    def add(self, turns: Sequence[BufferedTurn], said: Sequence[Said] | None = None) -> int:
        """Take what is notable in these turns (`notables_of`); beyond the bound the lightest go, of equals the earlier.

        A sentence weighs more by its use later on: a deadline stays before one more thing that was done.

        Returns:
            Bytes that were written; none where nothing is notable.
        """
        found, known = notables_of(turns, self._policy, said), {notable.text: notable for notable in self.all()}
        if turns and refuses(turns[0]):
            refused = turns[0].turn - 1
            known = {text: each for text, each in known.items() if each.turn != refused or not asks_for(each)}
        known.update({notable.text: notable for notable in found})
        best = sorted(known.values(), key=lambda notable: notable.turn)
        if len(best) > self._policy.notables:
            best.sort(key=lambda notable: (-notable.weight - use_of(notable.text, notable.role), -notable.turn))
            best = sorted(best[: self._policy.notables], key=lambda notable: notable.turn)
        encoded = _encode([(n.kind, n.role, n.turn, n.text, n.weight) for n in best])
        if encoded == self._parts.get(PART):
            return 0
        self._parts.put(PART, encoded)
        return len(PART) + len(encoded)
