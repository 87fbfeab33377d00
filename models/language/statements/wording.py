"""Words and pieces of patterns that several rules share."""

from __future__ import annotations

SEED_DECISION, SEED_PREFERENCE, SEED_CONSTRAINT, SEED_GOAL = 0.8, 0.7, 0.7, 0.8
"""Project memory, Automatic Extraction."""
SURE = 0.75
"""Of wordings that the source does not name."""
Wording = tuple[float, str, str]
"""Confidence, words of which a clause holds one, and the pattern that is searched in the folded clause."""


def any_of(words: str) -> str:
    """Alternatives, separated by blanks; an underscore stands for a blank inside of one."""
    return f"(?:{'|'.join(words.split()).replace('_', ' ')})"


TEAM = (
    r"(?:(?:the|our|my)(?: (?!other)\w+){0,2} (?:team|group|squad|crew)|the (?:team|group)|everyone"
    r"|we all|all of us)"
)
WE = rf"(?:^|(?<=[ ,:-]))(?:i|we|{TEAM})"
OTHER = (
    r"^(?!(?:i'd|i'll|i'm|i've|we'd|we'll|we're|you'd|something|anything|nothing|stuff|just"
    r"|it)\b)(?!(?:i|we|you|let's|let|the|an?|this|that|it|there|our|my|if|to)\b [a-z]+(?:ed"
    r"|en)\b)(?P<other>(?!i |we |you )[\w'.-]+(?: [\w'.-]+){0,4}?)"
)
HOW = (
    r"(?:n't| "
    + any_of(
        "not never have has had just finally now already all both also really definitely generally "
        "unanimously then "
        "jointly later strongly still always mostly usually clearly simply thus therefore actually would "
        "will be_able "
        "eventually personally collectively hereby do does did yet_to"
    )
    + r"|'ve|'d|'s)*"
)
DO = any_of(
    "run set open start restart call copy merge tag push pull execute type click install edit create "
    "delete rebuild roll "
    "export update check bump clone build fill enter deploy stop apply download upload import "
    "regenerate generate sync "
    "release commit rename move add remove use go paste select log reload reset drain scale replay "
    "flush verify wait "
    "rotate configure enable disable press switch"
)
_STEP_WORDS = (
    "kill check requeue refund put note call tell measure nuke branch wipe dump seed ping mail email ask "
    "attach sign print collect hand scan tick lock unlock fill format plug unplug clean pour weigh label "
    "store cover turn heat cool spread let dry mix rest fold bake find buy grind boil stir cut wash paint sand "
    "drill water write go search hit soak cook pick choose phone"
)
STEP = rf"(?:{DO}|{any_of(_STEP_WORDS)})"
"""What one does in a step of a procedure."""
ROLES = any_of(
    "manager lead designer developer engineer architect tester analyst owner contact client customer "
    "stakeholder cto ceo "
    "pm admin sponsor consultant partner vendor supplier maintainer reviewer scientist writer intern "
    "expert lawyer head director teacher principal headmaster accountant photographer caterer producer "
    "electrician plumber "
    "carpenter builder surveyor inspector coach treasurer chair chairwoman chairman secretary professor "
    "supervisor nurse "
    "doctor chef baker florist dj editor actor actress composer notary landlord tenant coordinator assistant "
    "host guide "
    "driver organiser organizer person guy go-to"
)
DATE = (
    r"(?:\d{1,2}(?:st|nd|rd|th)?\b(?! ?(?:%|percent|people|users|times))|(?:the )?\d{1,2}(?:st|nd|rd|th)\b"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|e|y|ust|tember|ember|ober)?\b"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|spring|summer|autumn|winter|christmas|easter|q[1-4]\b"
    r"|(?:the )?(?:end|middle|start|beginning) of|(?:next|this) (?:week|month|quarter|year|spring|summer|autumn"
    r"|winter))"
)
AMOUNT = r"(?:[$€£]?\d[\d.,]*|(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty)\b)"
THING = (
    r"(?!(?:he|she|they|it|this|that|these|those|there|you|i|we|if|when|what|who|which|where|how|why|nobody|nothing|one"
    r"|maybe|perhaps|someone|somebody)\b)"
    r"(?:(?:the|our|my|all|every|each) )?(?:(?!(?:who|which|that|if|says?|said|thinks?|not|never)\b)[\w'./-]+ ){1,4}?"
)
"""What a clause begins with and speaks of, with a blank behind it."""
NO_RULE = (
    "idea problem problems worries rush need way one doubt reason luck news decision hurry thanks chance clue "
    "comment sign "
    "answer change changes difference preference opinion time point wonder longer more matter big progress "
    "errors error "
    "response reply word trace"
)
"""What "no" before it makes a remark of."""
