"""Patterns of notable sentences, each with its weight. Found by a word that each of them holds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from models.events.app import NotableKind
from models.events.base import Role

Rules = Mapping[str, "list[NotableRule]"]
REFUSED = 0.3
"""Weight of what an assistant would not help with: it says what a conversation was about that had no other outcome."""


class NotableRule(Struct, frozen=True):
    """A sentence that matches is notable."""

    place: int
    """The first that matches counts."""
    kind: NotableKind
    weight: float
    pattern: re.Pattern[str]
    """Searched in the sentence, folded and without what leads into it."""
    loose: re.Pattern[str]
    """The same wherever it stands: found before anything is taken off the sentence."""
    hedged: bool
    """Whether it stands though hedged, or supposed further behind: "it crashes if I scroll", "I would prefer"."""


def _any(words: str) -> str:
    """Alternatives, separated by blanks; an underscore stands for a blank inside of one."""
    return f"(?:{'|'.join(words.split()).replace('_', ' ')})"


_START = r"(?:^|[,;:.(] ?|\b(?:and|but|so|that|then|because|as|think|now|since) )"
_WE = rf"{_START}(?:i|we)"
"""The speakers themselves, at the opening of a clause."""
_HOW = (
    r"(?: "
    + _any(
        "just finally now already both all also really definitely generally usually always much strongly still "
        "absolutely mostly normally often only actually currently recently have had"
    )
    + ")*"
)
_CHOOSING = _any(
    "go use take book keep switch stick choose pick order do move stay deploy cancel ship merge drop make buy meet "
    "schedule postpone get have set put fly start_with plan migrate renew return"
)
_TRANSACTION = (
    "go_with book order cancel reserve refund schedule renew upgrade downgrade stick_with proceed_with switch ship "
    "deploy merge"
)
_TASK = "give write show find make create plan recommend suggest explain help draft prepare build compare design"
_HEALTH = "allergic intolerant vegetarian vegan diabetic coeliac celiac pregnant asthmatic halal kosher allergy"
_OWN_STATE = (
    "a an the from based working using building planning travelling traveling moving learning studying running flying "
    "retired new_to responsible on_a on_an on_the getting hosting training writing looking_for organising organizing "
    "preparing staying trying_to saving in starting leading"
)
_ACTIONS = (
    "live work use run own study teach speak bought ordered paid moved started lost received returned upgraded updated "
    "installed booked earn weigh sleep eat drink cook play drive grow manage joined sold switched tried deploy"
)
_HAVING = "have need got"
_GOALS = "want need hope plan intend aim like"
_NO_GOALS = "know ask see hear understand say tell talk check be thank have"
_TIMED = (
    "deadline budget launch release meeting address party wedding trip team version database server flight appointment "
    "interview exam event project"
)
_DONE_WORDS = (
    "booked refunded cancelled canceled created scheduled updated ordered issued changed added removed fixed upgraded "
    "downgraded applied opened escalated reserved extended moved renamed merged deployed processed activated "
    "deactivated confirmed resolved solved shipped dispatched replaced waived credited transferred restored submitted "
    "forwarded registered deleted migrated restarted unblocked blocked sent set_up paid reset active"
)
_DONE = _any(_DONE_WORDS)
_BROKEN = (
    "crash crashes crashed crashing error errors fail fails failed failing broken broke stuck charged_twice "
    "double-charged double_charged overcharged missing locked_out timeout timeouts times_out timed_out leak leaks "
    "leaked bug damaged defective freezes frozen too_slow too_big too_small too_tight too_loud"
)
_NOT_WORKING = (
    r"(?:(?:doesn't|does not|isn't|is not|stopped|won't|can't|cannot) (?:\w+ )?"
    r"(?:work|working|start|load|open|arrive|respond|log ?in|connect|turn on|sync)\w*"
    r"|(?:never|hasn't|haven't|didn't) (?:arrived?|received?|come|came|got)\b)"
)
_REFUSING = (
    r"\bi(?: can't| cannot| can not| won't| will not|'m (?:unable|not able) to)(?: \w+)?"
    r" (?:help|assist)(?: you)? with (?!(?:that|this|it|those|these)\b)\w"
)
_CAUSE = r"\b(?:the|root) (?:actual |real |root )?(?:problem|issue|cause|culprit|reason|bug|error)"


def _by_word(*rules: tuple[NotableKind, float, str, str]) -> Rules:
    """Rules by each of the words of which a sentence holds one; a weight below zero marks those that may be hedged."""
    found: dict[str, list[NotableRule]] = {}
    for place, (kind, weight, words, pattern) in enumerate(rules):
        rule = NotableRule(
            place,
            kind,
            abs(weight),
            re.compile(pattern),
            re.compile(pattern.replace(_START, r"\b").replace("^", r"\b")),
            weight < 0,
        )
        for word in dict.fromkeys(word.partition("_")[0] for word in words.split()):
            found.setdefault(word, []).append(rule)
    return found


_DECISIONS_OF_USERS = (
    (
        NotableKind.DECISION,
        0.85,
        "decided chose chosen picked settled agreed opted concluded committed",
        (
            rf"{_WE}(?:'ve)?{_HOW} {_any('decided chose chosen picked settled_on agreed opted concluded committed')}\b"
            r"(?! with\b)"
        ),
    ),
    (NotableKind.DECISION, 0.85, "decision", r"\b(?:the|my|our|final) decision (?:is|was)\b|^decision:"),
    (
        NotableKind.DECISION,
        0.8,
        "let's lets",
        rf"(?:^|[,:;] ?|\b(?:so|then) )let'?s (?:not |just |please )*{_CHOOSING}\b(?! (?:over|through|back|a look)\b)",
    ),
    (
        NotableKind.DECISION,
        0.75,
        "i'll we'll i'm we're going will won't",
        (
            rf"{_WE}(?:'ll| will|'m going to|'re going to|'m going|'re going| won't)"
            rf"(?: (?:just|not|definitely|then|probably))? (?:{_CHOOSING}|with|wear)\b(?! (?:a look|back|in touch)\b)"
        ),
    ),
    (
        NotableKind.DECISION,
        0.6,
        _TRANSACTION,
        rf"^(?:please |kindly |just |go ahead and )*{_any(_TRANSACTION)} (?!up\b|of\b)\w",
    ),
)
_PREFERENCES_OF_USERS = (
    (
        NotableKind.FACT,
        0.78,
        f"{_HEALTH} can't cannot",
        rf"\b{_any(_HEALTH)}\b|\b(?:i|we|he|she|they|\w+) (?:can't|cannot) (?:have|eat|drink) \w",
    ),
    (
        NotableKind.PREFERENCE,
        -0.8,
        "prefer prefers preferred rather favourite favorite fan",
        (
            rf"{_WE}(?:'d| would)?{_HOW} (?:prefer|rather)\b|\bmy (?:\w+ )?(?:favou?rite|preferred)\b"
            r"|\b(?:i'm|am) (?:not )?an? (?:big |huge )?fan of\b"
        ),
    ),
    (
        NotableKind.PREFERENCE,
        -0.7,
        "like love hate dislike enjoy avoid stand",
        (
            rf"{_WE}(?: don't| do not| can't| cannot)?{_HOW} {_any('like love hate dislike enjoy avoid stand')} "
            r"(?!(?:to (?:know|ask|see|hear|understand|have|get)|that|this|your|how|what|the (?:idea|sound|look))\b"
            r"|(?:it|them|those|these)\b(?! \w))"
        ),
    ),
    (
        NotableKind.PREFERENCE,
        0.75,
        "always never now",
        r"^(?:please |in (?:the )?future,? )*(?:always|never) [a-z]+ (?!been\b|seen\b|had\b)|\bfrom now on\b",
    ),
    (
        NotableKind.PREFERENCE,
        0.65,
        "please",
        (
            r"^please (?:don't|do not|keep|use|call me|address me|answer|reply|contact me|send (?:me )?\w+ (?:by|via)"
            r"|avoid|stop)\b"
        ),
    ),
)
_OUTCOMES_OF_USERS = (
    (
        NotableKind.OUTCOME,
        0.75,
        "turned problem issue cause culprit reason root bug error",
        rf"\b(?:it )?turned out\b|{_CAUSE} (?:was|is that|is in|turned)\b",
    ),
    (
        NotableKind.OUTCOME,
        0.7,
        "fixed solved resolved worked works trick helped working gone",
        (
            r"\b(?:\w+ing|the \w+|your \w+|which) (?:\w+ ){0,3}?(?:fixed|solved|resolved|worked|did the trick|helped)\b"
            r"|\b(?:fixed|solved|resolved) (?:by|with)\b|\bworks (?:now|again|fine)\b|\bworking (?:now|again)\b"
            r"|\b(?:problem|issue|error) (?:is |has |'s )?(?:been )?(?:gone|fixed|solved|resolved)\b"
            r"|^(?:that|it|this) (?:has )?(?:fixed|solved|resolved|worked|did the trick)\b"
        ),
    ),
)
_FACTS_OF_USERS = (
    (
        NotableKind.FACT,
        -0.62,
        f"{_BROKEN} double doesn't not isn't stopped won't can't cannot never hasn't haven't didn't",
        rf"\b{_any(_BROKEN)}\b|\b{_NOT_WORKING}",
    ),
    (
        NotableKind.FACT,
        0.6,
        "my our",
        (
            rf"{_START}(?:my|our) (?:[\w'-]+ ){{1,5}}?(?:is|are|was|were|has|have|will be|keeps?|needs?|expires?"
            r"|starts?|arrives?|runs?|lives?|costs?|ends?|speaks?|ha[sd]n't|isn't|turns)\b"
        ),
    ),
    (
        NotableKind.FACT,
        0.6,
        "i'm am we're",
        rf"{_WE}(?:'m| am|'re| are)(?: not)?{_HOW} {_any(_OWN_STATE)}\b(?! (?:bit|little|lot|same|only one|case)\b)",
    ),
    (
        NotableKind.FACT,
        0.55,
        _ACTIONS,
        rf"{_WE}(?:'ve| don't)?{_HOW} {_any(_ACTIONS)} (?!(?:it|that)\b|to\b(?! [A-Za-z]+))",
    ),
    (
        NotableKind.FACT,
        0.5,
        _HAVING,
        (
            rf"{_WE}(?:'ve| don't)?{_HOW} {_any(_HAVING)} (?!(?:to|it|that|not|no idea|another|one|help|been|your|some"
            r"|it's|a (?:quick )?(?:question|problem|issue|feeling|look|moment))\b)"
        ),
    ),
    (
        NotableKind.FACT,
        -0.5,
        _GOALS,
        rf"{_WE}(?:'d| would)?{_HOW} {_any(_GOALS)} to (?!{_any(_NO_GOALS)}\b)\w",
    ),
    (
        NotableKind.FACT,
        0.5,
        _TIMED,
        rf"\b(?:the|total) (?:\w+ )?{_any(_TIMED)}(?: \w+){{0,3}}? {_any('is are was will_be has starts leaves')}\b",
    ),
    (NotableKind.FACT, 0.42, _TASK, rf"^(?:please |kindly )*{_any(_TASK)} .*\b(?:my|our|for|about|with)\b"),
)
_OF_ASSISTANTS = (
    (
        NotableKind.OUTCOME,
        0.7,
        _DONE_WORDS,
        (
            r"\b(?:i've|i have|we've|we have)(?: (?:just|now|also|already|successfully|gone ahead and))* "
            rf"{_DONE}\b(?! (?:anything|nothing)\b)"
        ),
    ),
    (
        NotableKind.OUTCOME,
        0.65,
        _DONE_WORDS,
        (
            rf"\b(?:(?:has|have) been|(?:is|are) now|was|were|will be) (?:successfully )?{_DONE}\b"
            r"|\b(?:is|are) (?:now |all )?(?:confirmed|active|booked|scheduled|reserved)\b"
        ),
    ),
    (
        NotableKind.OUTCOME,
        0.65,
        "confirmation booking reference ticket tracking case order",
        (
            r"\b(?:confirmation|booking|reference|ticket|tracking|case|order) (?:number |code |id |reference )?"
            r"(?:is|:) ?\S*\d"
        ),
    ),
    (
        NotableKind.OUTCOME,
        0.65,
        "problem cause issue reason error bug culprit caused resolved fixed solved",
        rf"{_CAUSE} (?:was|is that|is in|turned|comes from)\b|\b(?:(?:was|is) caused|resolved|fixed|solved) by\b",
    ),
    (NotableKind.OUTCOME, REFUSED, "help assist", _REFUSING),
    (
        NotableKind.OUTCOME,
        0.5,
        "receive get arrive arrives",
        r"\byou(?:'ll| will) (?:receive|get)\b.*\d|\b(?:will arrive|arrives) (?:on|by|at|within|in)\b",
    ),
    (
        NotableKind.DECISION,
        0.6,
        "agreed decided we'll",
        r"\bwe (?:agreed|decided)\b|\b(?:so|then) we'll (?:go|use|keep|meet|start)\b",
    ),
)
RULES: Mapping[Role, Rules] = {
    Role.USER: _by_word(*_DECISIONS_OF_USERS, *_PREFERENCES_OF_USERS, *_OUTCOMES_OF_USERS, *_FACTS_OF_USERS),
    Role.ASSISTANT: _by_word(*_OF_ASSISTANTS),
}
"""By who speaks, and by word. What tools and systems say is nobody's."""
