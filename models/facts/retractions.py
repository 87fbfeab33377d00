"""Rules for what the user takes back: "forget my address", "I'm no longer vegetarian", "I moved"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.facts.identity import MY_NOUNS, _pet_key
from models.facts.preferences import KNOWN_THINGS
from models.facts.statements import Statement
from models.facts.values import CONSTRAINT, IDENTITY, INSTRUCTION, PREFERENCE, Finding, Rule, rule, slug
from models.facts import vocabulary
from models.user_events import FactCategory, Retraction

_NOUNS: dict[str, tuple[FactCategory, str]] = {
    **{noun: (IDENTITY, key) for noun, key in MY_NOUNS.items()},
    **{noun: (PREFERENCE, key) for noun, key in KNOWN_THINGS.items()},
    "name": (IDENTITY, "name"), "full name": (IDENTITY, "name"), "nickname": (IDENTITY, "name"),
    "where i live": (IDENTITY, "location"), "how old i am": (IDENTITY, "age"), "where i work": (IDENTITY, "employer"),
    "what i do": (IDENTITY, "occupation"), "workplace": (IDENTITY, "employer"), "boss": (IDENTITY, "employer"),
    "kids": (IDENTITY, "children"), "children": (IDENTITY, "children"), "partner": (IDENTITY, "partner_name"),
    "diet": (CONSTRAINT, "diet"), "budget": (CONSTRAINT, "budget"), "availability": (CONSTRAINT, "availability"),
    "schedule": (CONSTRAINT, "availability"), "dietary restrictions": (CONSTRAINT, "diet"), "dietary preferences": (CONSTRAINT, "diet"),
    "relationship status": (IDENTITY, "marital_status"), "place": (IDENTITY, "location"), "home": (IDENTITY, "address"),
    "language preference": (PREFERENCE, "language"), "contact details": (IDENTITY, "email"),
    **{f"{who}'s name": (IDENTITY, "partner_name") for who in vocabulary.RELATIONSHIPS},
    **{who: (IDENTITY, "partner_name") for who in vocabulary.RELATIONSHIPS},
}  # fmt: skip
_STYLE_RULES = (
    (re.compile(r"\bemojis?\b", re.IGNORECASE), "emojis"),
    (re.compile(r"\b(?:metric|imperial|units?|celsius|fahrenheit)\b", re.IGNORECASE), "units"),
    (re.compile(r"\b(?:answer\w*|reply\w*|respond\w*|speak\w*|writ\w+|talk\w*|use|using)\b.*\b(?:in|to)? ?(?:" + "|".join(sorted(vocabulary.NATURAL_LANGUAGES)) + r")\b", re.IGNORECASE), "answer_language"),
    (re.compile(r"\b(?:citations?|cit(?:e|ing)|sources|references)\b", re.IGNORECASE), "citations"),
    (re.compile(r"\bcomments?\b", re.IGNORECASE), "code_comments"),
    (re.compile(r"\b(?:bullets?|bullet points|tables?|markdown|lists)\b", re.IGNORECASE), "response_format"),
    (re.compile(r"\b(?:short|brief|concise|long(?:er)?|detailed|length|word limit)\b", re.IGNORECASE), "response_length"),
    (re.compile(r"\b(?:formal|casual|informal|tone)\b", re.IGNORECASE), "tone"),
)


def _gone(*keys: str):  # type: ignore[no-untyped-def]
    def build(_match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
        return [Retraction(category=IDENTITY, key=key) for key in keys]

    return build


def _forget(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return taken_back(match["v"])


def taken_back(noun_phrase: str) -> list[Finding]:
    """What "my address and my phone number" names."""
    found: list[Finding] = []
    for part in re.split(r"\s*(?:,|\band\b|\bor\b)\s*", noun_phrase)[:6]:
        noun = re.sub(r"^(?:my|the|where|that|your|all) (?!i )|^(?:about )?my ", "", re.sub(r"\s+(?:from (?:your|the|my) .*|please|entirely|completely|for good|now|info(?:rmation)?|details?|rule|thing|preference|for me|again|you have|on file|we (?:set|discussed|agreed).*|i (?:gave|told|mentioned|shared|set|asked).*)$", "", part.strip(" .!\"'").lower())).strip()
        noun = re.sub(r"^(?:old|current|new|previous|saved|stored|exact) ", "", noun)
        if noun in _NOUNS:
            category, key = _NOUNS[noun]
            found.append(Retraction(category=category, key=key))
        elif allergy := re.match(r"([\w-]+(?: [\w-]+)?) allergy$|allergy to ([\w ]+)$", noun):
            found.append(Retraction(category=CONSTRAINT, key=f"allergy_{slug(allergy[1] or allergy[2])}"))
        elif favourite := re.match(r"favourite ([\w -]+)$", noun):
            found.append(Retraction(category=PREFERENCE, key=f"favourite_{slug(favourite[1])}"))
        elif pet := re.match(r"(\w+)(?:'s name)?$", noun):
            if pet[1] in vocabulary.PETS:
                found.append(Retraction(category=IDENTITY, key=_pet_key(pet[1])))
    return found


def _everything(_match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return [Retraction()]


def _rule_dropped(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    for pattern, key in _STYLE_RULES:
        if pattern.search(match["v"]):
            return [Retraction(category=INSTRUCTION, key=key)]
    return []


def _jobless(_match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return [Retraction(category=IDENTITY, key="employer"), Retraction(category=IDENTITY, key="occupation")]


def _pet_gone(match: re.Match[str], _statement: Statement) -> Iterable[Finding]:
    return [Retraction(category=IDENTITY, key=_pet_key(match["kind"]))]


_PET = "|".join(sorted(vocabulary.PETS, key=len, reverse=True))
_PARTNER = "|".join(sorted(vocabulary.RELATIONSHIPS, key=len, reverse=True))
_ABOUT_ME = r"(?:(?:you (?:know|have|remember|stored|saved|learned|learnt)(?: (?:stored|saved|on file))?|i(?:'ve)? (?:ever )?(?:told|said to|shared with) you|stored|saved|we(?:'ve)? (?:ever )?(?:discussed|talked about)) ?)?(?:(?:about|on|of|regarding) me)?(?: so far| until now| from your memory)?"

RULES: tuple[Rule, ...] = (
    rule("forget/delete/erase/wipe/remove/clear/drop", rf"(?:forget|delete|erase|wipe|remove|clear|drop) (?:about )?(?:everything|all(?: of)?(?: the| my| your)?(?: data| facts| memor(?:y|ies)| info(?:rmation)?| personal (?:data|information|info)| details| stuff| things| that| of it)?|(?:all )?(?:my|your) (?:data|profile|memor(?:y|ies)(?: of me)?|(?:personal )?info(?:rmation)?)|me|what(?:ever)?|anything) ?{_ABOUT_ME}(?: please| now| completely|, please)?$", _everything),
    rule("forget/delete/erase/remove/ignore/disregard/drop/scratch/clear", r"(?:forget|delete|erase|remove|ignore|disregard|drop|scratch|clear) (?:about )?(?:what (?:i (?:said|told you)|you know|you have) about |anything about |everything (?:you know |i (?:said|told you) )?about |the (?:thing|bit|part|info(?:rmation)?|fact) about |any (?:mention|record) of |all (?:mentions|records) of )?(?P<v>(?:my|where i|how old i|what i do|our|about my)\b.+)", _forget),
    rule("don't/no/stop", r"(?:don't|no need to|stop) (?:remember(?:ing)?|keep(?:ing)?|stor(?:e|ing)|sav(?:e|ing)|us(?:e|ing)) (?P<v>my .+)", _forget),
    rule("i want/i'd/i need", r"(?:i want|i'd like|i need) (?:you )?to (?:forget|delete|remove) (?P<v>my .+)", _forget),
    rule("i changed/i've/i got/i have/i switched", r"i(?:'ve)? (?:just |recently )?(?:changed|switched|got a new|have a new|gotten a new|found a new) (?:jobs?|employers?|companies)$", _gone("employer")),
    rule("i moved/i've/we moved/we've/i'm", r"(?:i|we)(?:'ve| have)? (?:just |recently |finally )?moved(?: (?:out of (?:my|our|the) (?:old )?(?:place|flat|apartment|house|home)|out|away|house|houses|home|apartments?|flats?|recently|last \w+|this \w+|again|places|(?:in)?to an? (?:new|different|bigger|smaller|other|another|nicer|cheaper) (?:\w+ )?(?:place|flat|apartment|house|home|city|town|country|address)))*(?:,? (?:yesterday|recently|last \w+))?$", _gone("location", "address")),
    rule("my/the", r"(?:my|the) (?:old )?(?P<v>[\w' -]{2,24}?) (?:(?:has|have|'s)? ?(?:changed|just changed|recently changed)|is (?:out of date|outdated|wrong|different now|no longer (?:valid|correct|right|up to date|current|active))|isn't (?:valid|correct|right|current|up to date|the same)(?: anymore)?|doesn't (?:work|exist|apply|matter)(?: anymore)|no longer (?:works|exists|applies|matters)|expired)\b(?!.* to\b)", _forget),
    rule("i changed/i've/i got/i have/i switched", r"i(?:'ve)? (?:just |recently )?(?:changed|switched|got a new|have a new|gotten a new) (?P<v>(?:my )?(?:phone|number|phone number|email|email address|address|phone numbers)s?)$", lambda m, s: taken_back(re.sub(r"s$", "", m["v"])) if "address" not in m["v"] else taken_back(m["v"])),
    rule("i quit/i left/i lost/i've/i resigned", r"i(?:'ve)? (?:just |recently )?(?:quit|left|lost|resigned from|given up) (?:my|the) (?:old )?job\b", _gone("employer")),
    rule("i got/i was/i've/i'm", r"i(?:'ve| was|'m)? (?:just |recently )?(?:been |got |gotten )?(?:laid off|fired|made redundant|let go)\b", _gone("employer")),
    rule("i left/i quit/i resigned", r"i (?:left|quit|resigned from) (?P<v>[A-Z][\w&.-]*(?: [A-Z][\w&.-]*){0,3})", lambda m, s: [Retraction(category=IDENTITY, key="employer", value=m["v"])] if m["v"][:1].isupper() else []),
    rule("we broke/i broke/we split/we separated/we divorced/we're", rf"(?:we|i|me and my (?:{_PARTNER}))(?:'ve| have)? ?(?:just |recently )?(?:broke up|broken up|split up|separated|divorced|are no longer together|'re getting divorced)(?: with .+)?", _gone("partner_name", "marital_status")),
    rule("my", rf"my (?:{_PARTNER}) and i(?:'ve| have)? (?:just |recently )?(?:broke up|broken up|split up|separated|divorced|got divorced|are separated)", _gone("partner_name", "marital_status")),
    rule("my/our", rf"(?:my|our) (?:\w+ )?(?P<kind>{_PET})(?:,? \w+,?)? (?:has |just |recently |sadly )*(?:died|passed away|passed|was put down|ran away)\b", _pet_gone),
    rule("you can/you don't/you may/you needn't/you no/you", r"you (?:can|may|don't (?:have|need) to|no longer (?:have|need) to|needn't|are free to) (?:stop |now )?(?P<v>.+?)(?: again| anymore| now| any longer)$|you no longer (?:have|need) to (?P<v2>.+)", lambda m, s: _rule_dropped(m, s) if m["v"] else []),
    rule("stop/no", r"(?:stop|no longer|no need to|no need for) (?P<v>(?:answering|replying|responding|speaking|writing|talking|citing|answer|reply|respond|cite) .+)", _rule_dropped),
    rule("forget/drop/ignore/scrap/disregard/cancel/remove/lift", r"(?:forget|drop|ignore|scrap|disregard|cancel|remove|lift) (?:about )?(?:the|that|my|your) (?P<v>[\w -]{2,60}?(?:rule|instruction|thing|request|preference|limit|restriction|ban|requirement|policy)\b)", _rule_dropped),
    rule("emojis", r"(?P<v>emojis are (?:fine|ok|okay|allowed|welcome))", _rule_dropped),
)  # fmt: skip
