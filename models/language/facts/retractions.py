"""Rules for what the user takes back: "forget my address", "I'm no longer vegetarian", "I moved"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.events.user import FactCategory, Retraction
from models.language.facts import vocabulary
from models.language.facts.family import pet_key
from models.language.facts.kinds import KNOWN_THINGS
from models.language.facts.person import MY_NOUNS
from models.language.facts.statements import Statement
from models.language.facts.values import (
    CONSTRAINT,
    IDENTITY,
    INSTRUCTION,
    PREFERENCE,
    Build,
    FactRule,
    Finding,
    rule,
    slug,
)

_NOUNS: dict[str, tuple[FactCategory, str]] = {
    **{noun: (IDENTITY, key) for noun, key in MY_NOUNS.items()},
    **{noun: (PREFERENCE, key) for noun, key in KNOWN_THINGS.items()},
    "name": (IDENTITY, "name"),
    "full name": (IDENTITY, "name"),
    "nickname": (IDENTITY, "name"),
    "where i live": (IDENTITY, "location"),
    "how old i am": (IDENTITY, "age"),
    "where i work": (IDENTITY, "employer"),
    "what i do": (IDENTITY, "occupation"),
    "workplace": (IDENTITY, "employer"),
    "boss": (IDENTITY, "employer"),
    "kids": (IDENTITY, "children"),
    "children": (IDENTITY, "children"),
    "partner": (IDENTITY, "partner_name"),
    "diet": (CONSTRAINT, "diet"),
    "budget": (CONSTRAINT, "budget"),
    "availability": (CONSTRAINT, "availability"),
    "schedule": (CONSTRAINT, "availability"),
    "dietary restrictions": (CONSTRAINT, "diet"),
    "dietary preferences": (CONSTRAINT, "diet"),
    "relationship status": (IDENTITY, "marital_status"),
    "place": (IDENTITY, "location"),
    "home": (IDENTITY, "address"),
    "language preference": (PREFERENCE, "language"),
    "contact details": (IDENTITY, "email"),
    **{f"{who}'s name": (IDENTITY, "partner_name") for who in vocabulary.RELATIONSHIPS},
    **dict.fromkeys(vocabulary.RELATIONSHIPS, (IDENTITY, "partner_name")),
}
_STYLE_RULES = (
    (re.compile(r"\bemojis?\b", re.IGNORECASE), "emojis"),
    (re.compile(r"\b(?:metric|imperial|units?|celsius|fahrenheit)\b", re.IGNORECASE), "units"),
    (
        re.compile(
            r"\b(?:answer\w*|reply\w*|respond\w*|speak\w*|writ\w+|talk\w*|use|using|answers)\b.*\b(?:in"
            r"|to)? ?(?:" + "|".join(sorted(vocabulary.NATURAL_LANGUAGES)) + r")\b",
            re.IGNORECASE,
        ),
        "answer_language",
    ),
    (re.compile(r"\b(?:citations?|cit(?:e|ing)|sources|references)\b", re.IGNORECASE), "citations"),
    (re.compile(r"\bcomments?\b", re.IGNORECASE), "code_comments"),
    (re.compile(r"\b(?:bullets?|bullet points|tables?|markdown|lists)\b", re.IGNORECASE), "response_format"),
    (
        re.compile(r"\b(?:short|brief|concise|long(?:er)?|detailed|length|word limit)\b", re.IGNORECASE),
        "response_length",
    ),
    (re.compile(r"\b(?:formal|casual|informal|tone)\b", re.IGNORECASE), "tone"),
)


def _gone(*keys: str) -> Build:
    def build(_match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
        return [Retraction(category=IDENTITY, key=key) for key in keys]

    return build


def _forget(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return taken_back(match["v"])


def taken_back(noun_phrase: str) -> list[Finding]:
    """What "my address and my phone number" names."""
    found: list[Finding] = []
    for part in re.split(r"\s*(?:,|\band\b|\bor\b)\s*", noun_phrase)[:6]:
        noun = re.sub(
            r"^(?:my|the|where|that|your|all) (?!i )|^(?:about )?my ",
            "",
            re.sub(
                r"\s+(?:from (?:your|the|my|earlier|before) ?.*|please|entirely|completely|for good|now|"
                r"info(?:rmation)?"
                r"|details?|rule|thing|preference|for me|again|you have|on file|we (?:set|discussed|agreed).*"
                r"|i (?:gave|told|mentioned|shared|set|asked).*)$",
                "",
                part.strip(" .!\"'").lower(),
            ),
        ).strip()
        noun = re.sub(r"^(?:old|current|new|previous|saved|stored|exact) ", "", noun)
        noun = re.sub(r"^[\w-]+ (?=diet$)", "", noun)
        if noun in _NOUNS:
            category, key = _NOUNS[noun]
            found.append(Retraction(category=category, key=key))
        elif allergy := re.match(r"([\w-]+(?: [\w-]+)?) allergy$|allerg(?:y|ies) to ([\w ]+)$", noun):
            found.append(Retraction(category=CONSTRAINT, key=f"allergy_{slug(allergy[1] or allergy[2])}"))
        elif favourite := re.match(r"favourite ([\w -]+)$", noun):
            found.append(Retraction(category=PREFERENCE, key=f"favourite_{slug(favourite[1])}"))
        elif (kind := noun.removesuffix("'s name")) in vocabulary.PETS:
            found.append(Retraction(category=IDENTITY, key=pet_key(kind)))
    return found


def _everything(_match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return [Retraction()]


def _rule_dropped(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return rule_named(match.groupdict().get("also") or match["v"])


def rule_named(text: str) -> list[Finding]:
    """The rule about answers that is taken back: "answers in French"."""
    for pattern, key in _STYLE_RULES:
        if pattern.search(text):
            return [Retraction(category=INSTRUCTION, key=key)]
    return []


def _left(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return [Retraction(category=IDENTITY, key="employer", value=match["v"])]


def _pet_gone(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return [Retraction(category=IDENTITY, key=pet_key(match["kind"] or match["other"]))]


_PET = "|".join(sorted(vocabulary.PETS, key=len, reverse=True))
_PARTNER = "|".join(sorted(vocabulary.RELATIONSHIPS, key=len, reverse=True))
_KNOWN = (
    r"(?:you(?:'ve)? (?:ever )?(?:know|have|remember|stored?|saved?|learn(?:ed|t))(?: (?:stored"
    r"|saved|on file))?|i(?:'ve)? (?:ever )?(?:told you"
    r"|shared)|stored|saved|we(?:'ve)? (?:ever )?(?:discussed|talked about))"
)
_ALL_OF_ME = (
    rf"(?:(?:everything|anything|what(?:ever)?|all(?: of)?(?: that| the| my| your)?(?: \w+){{0,2}})(?:"
    rf" that)?(?: {_KNOWN})? (?:about|on|of|regarding) me"
    rf"|(?:everything|all(?: of)?(?: that)?|all my \w+) (?:that )?you(?:'ve)? (?:know|have|remember"
    rf"|stored?|saved?)"
    r"|(?:all (?:of )?)?(?:my|your) (?:personal )?(?:data|profile|memory|memories"
    r"|info(?:rmation)?)(?: (?:of|about) me)?|all (?:memories|facts)|me)"
)
"""Taking everything back needs saying so: "forget all that" only turns to another subject."""

RULES: tuple[FactRule, ...] = (
    rule(
        "forget/drop/ignore/disregard/cancel",
        r"(?:forget|drop|ignore|disregard|cancel) (?:my|the|that) (?:\w+ )?(?:instruction|rule|request"
        r"|preference)s? (?:about|on|for|to|that) (?P<v>.+)",
        _rule_dropped,
    ),
    rule(
        "i gave/we gave/i rehomed/we rehomed",
        rf"(?:i|we) (?:gave (?:my|our) (?P<kind>{_PET}) away|rehomed (?:my|our) (?P<other>{_PET}))",
        _pet_gone,
    ),
    rule(
        "forget/delete/erase/wipe/remove/clear/drop",
        rf"(?:forget|delete|erase|wipe|remove|clear|drop) (?:about )?{_ALL_OF_ME}(?: so far| until now|"
        rf" from (?:your|the) \w+| please"
        r"| now| completely)*$",
        _everything,
    ),
    rule(
        "forget/delete/erase/remove/ignore/disregard/drop/scratch/clear",
        r"(?:forget|delete|erase|remove|ignore|disregard|drop|scratch|clear) (?:about )?(?:what (?:i"
        r" (?:said|told you)|you know|you have) about |anything about |everything (?:you know |i"
        r" (?:said|told you) )?about |the (?:thing|bit|part|info(?:rmation)?|fact) about |any"
        r" (?:mention|record) of |all (?:mentions|records) of )?(?P<v>(?:my|where i|how old i|what i"
        r" do|our|about my)\b.+)",
        _forget,
    ),
    rule(
        "don't/no/stop",
        r"(?:don't|no need to|stop) (?:remember(?:ing)?|keep(?:ing)?|stor(?:e|ing)|sav(?:e|ing)|us(?:e"
        r"|ing)) (?P<v>my .+)",
        _forget,
    ),
    rule("i want/i'd/i need", r"(?:i want|i'd like|i need) (?:you )?to (?:forget|delete|remove) (?P<v>my .+)", _forget),
    rule(
        "i changed/i've/i got/i have/i switched",
        r"i(?:'ve)? (?:just |recently )?(?:changed|switched|got a new|have a new|gotten a new|found a"
        r" new) (?:jobs?|employers?|companies)$",
        _gone("employer"),
    ),
    rule(
        "i moved/i've/we moved/we've/i'm",
        r"(?:i|we)(?:'ve| have)? (?:just |recently |finally )?moved(?: (?:out of (?:my|our|the) (?:old"
        r" )?(?:place|flat|apartment|house|home)|out|away|house|houses|home|apartments?|flats?"
        r"|recently|last \w+|this \w+|again|places|(?:in)?to an? (?:new|different|bigger|smaller|other"
        r"|another|nicer|cheaper) (?:\w+ )?(?:place|flat|apartment|house|home|city|town|country"
        r"|address)))*(?:,? (?:yesterday|recently|last \w+))?$",
        _gone("location", "address"),
    ),
    rule(
        "my/the",
        r"(?:my|the) (?:old )?(?P<v>[\w' -]{2,24}?) (?:(?:has|have|'s)? ?(?:changed|just changed"
        r"|recently changed)|is (?:out of date|outdated|wrong|different now|no longer (?:valid|correct"
        r"|right|up to date|current|active))|isn't (?:valid|correct|right|current|up to date|the"
        r" same)(?: anymore)?|doesn't (?:work|exist|apply|matter)(?: anymore)|no longer (?:works"
        r"|exists|applies|matters)|expired)\b(?!.* to\b)",
        _forget,
    ),
    rule(
        "i changed/i've/i got/i have/i switched",
        r"i(?:'ve)? (?:just |recently )?(?:changed|switched|got a new|have a new|gotten a new)"
        r" (?P<v>(?:my )?(?:phone|number|phone number|email|email address|address)) *$",
        _forget,
    ),
    rule(
        "i quit/i left/i lost/i've/i resigned",
        r"i(?:'ve)? (?:just |recently )?(?:quit|left|lost|resigned from|given up) (?:my|the) (?:old"
        r" )?job\b",
        _gone("employer"),
    ),
    rule(
        "i got/i was/i've/i'm",
        r"i(?:'ve| was|'m)? (?:just |recently )?(?:been |got |gotten )?(?:laid off|fired|made"
        r" redundant|let go)\b",
        _gone("employer"),
    ),
    rule(
        "i left/i quit/i resigned",
        r"i (?:left|quit|resigned from) (?P<v>(?-i:[A-Z])[\w&.-]*(?: (?-i:[A-Z])[\w&.-]*){0,3})",
        _left,
    ),
    rule(
        "we broke/i broke/we split/we separated/we divorced/we're",
        rf"(?:we|i|me and my (?:{_PARTNER}))(?:'ve| have)? ?(?:just |recently )?(?:broke up|broken up"
        rf"|split up|separated|divorced|are no longer together|'re getting divorced)(?: with .+)?",
        _gone("partner_name", "marital_status"),
    ),
    rule(
        "my",
        rf"my (?:{_PARTNER}) and i(?:'ve| have)? (?:just |recently )?(?:broke up|broken up|split up"
        rf"|separated|divorced|got divorced|are separated)",
        _gone("partner_name", "marital_status"),
    ),
    rule(
        "my/our",
        rf"(?:my|our) (?:\w+ )?(?P<kind>{_PET})(?:,? \w+,?)? (?:has |just |recently |sadly )*(?:died"
        rf"|passed away|passed|was put down|ran away)\b",
        _pet_gone,
    ),
    rule(
        "you can/you don't/you may/you needn't/you no/you",
        r"you (?:can|may|don't (?:have|need) to|no longer (?:have|need) to|needn't|are free to)"
        r" (?:stop |now )?(?P<v>.+?)(?: again| anymore| now| any longer)$|you no longer (?:have|need)"
        r" to (?P<also>.+)",
        _rule_dropped,
    ),
    rule(
        "stop/no",
        r"(?:stop|no longer|no need to|no need for) (?P<v>(?:answering|replying|responding|speaking"
        r"|writing|talking|citing|answer|reply|respond|cite) .+)",
        _rule_dropped,
    ),
    rule(
        "forget/drop/ignore/scrap/disregard/cancel/remove/lift",
        r"(?:forget|drop|ignore|scrap|disregard|cancel|remove|lift) (?:about )?(?:the|that|my|your)"
        r" (?P<v>[\w -]{2,60}?(?:rule|instruction|thing|request|preference|limit|restriction|ban"
        r"|requirement|policy)\b)",
        _rule_dropped,
    ),
    rule("emojis", r"(?P<v>emojis are (?:fine|ok|okay|allowed|welcome))", _rule_dropped),
)
