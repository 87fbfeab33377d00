"""Patterns of notes: "Roof: clay tiles", "Deadline -> 5 May, no extensions", "Goal for June = 50 teams".

| what is noted | type |
|---|---|
| steps: "returns: check the receipt, refund, and put …" | procedure |
| under goal, target, aim | goal |
| under rule, limit, requirement; or with max, at most, never, hard | constraint |
| under a role or "contacts"; a person's name | entity |
| under style, tone, preference | preference |
| under address, port, version, deadline, budget, or a number | fact |
| under anything else that a project has: what was chosen | decision |

What is a message's own heading ("note:", "error:", "question:") notes nothing.
"""

from __future__ import annotations

import re

from models.language.statements.wording import ROLES, STEP, SURE, Wording, any_of

_IS = r" ?(?:: | -> | => | = | - )"
_NO_TOPIC = (
    "note notes nb ps p.s edit error errors warning question questions q a re example todo todos update idea "
    "ideas quote "
    "me him her you us them answer result results output input hint tip tips thanks hi hey hello log status info debug "
    "fatal traceback http https problem problems issue issues bug bugs symptom summary title subject text prompt "
    "expected "
    "actual steps question task tasks e.g eg i.e ie i we he she they it this that there what who when where why how is "
    "are was were to if because and or but said says say maybe perhaps option options proposal suggestion "
    "alternatively "
    "alternative pro pros con cons user assistant system translate summarise summarize rewrite context draft "
    "open later "
    "quick from for to after before in on at with by about during since until heads something anything typo yes "
    "no ok sure true false reminder fyi spoiler joke conclusion caption cause reason fix got get see saw found "
    "here look one my make write add long_story short"
)
_TOPIC = (
    rf"^(?:the |our )?(?P<topic>(?!{any_of(_NO_TOPIC).replace('.', chr(92) + '.')}\b)(?:[\w/'&.+-]+"
    rf"(?: (?!(?:i|we|you|it|is|are|was|to|what|how|should|must|can|say|said|says|again|else|up|this|shorter"
    rf"|longer)\b)[\w/'&.+-]+){{0,3}})){_IS}"
)
_OPEN = (
    "tbd tba tbc unknown pending still not no_idea idk unclear waiting need needs see none nothing open maybe "
    "perhaps what "
    "which who how should could would can i we you he she they it it's this that there done ok yes never_mind "
    "undecided "
    "either leaking broken down failed failing late missing good bad great better worse terrible fixed "
    "in_progress please "
    "if when error warning todo n/a same ask let's don't do"
)
_SAYING = (
    "i we you he she they it i'm we're is are was were am has have had did does do found works must should can "
    "will would "
    "could might says said my your his her their me him them us who which"
)
_HELD = (
    "address url phone port version wifi repo repository deadline budget size email mail hours opening stack capacity "
    "branch path host kickoff launch date iban"
)
_RULED = (
    "rule rules limit limits constraint constraints requirement requirements must musts restriction restrictions max"
)
_KEPT_TO = (
    r"max|maximum|min|minimum|at most|at least|no more than|not more than|never|hard (?:cap|limit)|no later than"
    r"|no extensions"
)
_WANTED = "okr kpi north_star goal goals target targets aim aims objective objectives mission vision"
_LIKED = "style tone preference preferences format"
_PEOPLE = "contact contacts vendor vendors supplier suppliers team crew cast people staff who roles"

_SETTLED = "decision decisions decided agreed approved settled chosen"
_OF = r"(?: so far| (?:for|at|on|of|with|this|next) [\w' ]{1,30}?)?"
HEADING = re.compile(
    rf"(?:[\w'-]+ ){{0,3}}(?:{any_of(f'{_PEOPLE} {_WANTED} {_RULED} {_LIKED} {_SETTLED}')}|{ROLES}s?){_OF}",
    re.IGNORECASE,
)
"""Of a list, where it says what its items are."""
PEOPLE = re.compile(rf"(?P<heading>(?:[\w'-]+ ){{0,3}}{any_of(_PEOPLE)}{_OF}): (?P<items>.+)", re.IGNORECASE)
"""Several in a line."""
NOTED_PROCEDURES: tuple[Wording, ...] = (
    (
        SURE,
        ":",
        rf"^(?:[\w' -]{{2,50}}){_IS}(?:(?:first|always|then|just) )*{STEP}\b.*(?:, | and | then |, then | -> ){STEP}\b",
    ),
)
NOTED_GOALS: tuple[Wording, ...] = (
    (SURE, ":", rf"^(?:[\w'-]+ ){{0,3}}{any_of(_WANTED)}(?: (?:for|of|in|this|next) [\w' ]{{1,30}})?{_IS}\S"),
)
NOTED_CONSTRAINTS: tuple[Wording, ...] = (
    (SURE, ":", rf"^(?:[\w'-]+ ){{0,3}}{any_of(_RULED)}{_IS}\S"),
    (SURE, ":", rf"{_TOPIC}(?!{any_of(_OPEN)}\b).*\b(?:{_KEPT_TO})\b"),
)
NOTED_ENTITIES: tuple[Wording, ...] = (
    (SURE, ":", rf"^(?:[\w'-]+ ){{0,3}}(?:{any_of(_PEOPLE)}|{ROLES})s?{_OF}{_IS}(?!{any_of(_OPEN)}\b)\w"),
    (SURE, ":", rf"{_TOPIC}(?:our|my) (?:\w+ ){{0,2}}{ROLES}\b"),
    (SURE, ":", rf"{_TOPIC}(?P<value>(?:mrs?|ms|dr|prof|frau|herr|mme|m|sra?)\.? \w+)"),
)
NOTED_PREFERENCES: tuple[Wording, ...] = ((SURE, ":", rf"^(?:[\w'-]+ ){{0,2}}{any_of(_LIKED)}{_IS}\w"),)
NOTED_FACTS: tuple[Wording, ...] = (
    (SURE, ":", rf"^(?:[\w'-]+ ){{0,3}}{any_of(_HELD)}(?: (?:for|of) [\w' ]{{1,30}})?{_IS}(?!{any_of(_OPEN)}\b)\S"),
)
NOTED_DECISIONS: tuple[Wording, ...] = (
    (SURE, ":", rf"^(?:[\w'-]+ ){{0,3}}{any_of(_SETTLED)}{_OF}{_IS}(?!{any_of(_OPEN)}\b)\w"),
    (
        SURE,
        ":",
        (
            rf"{_TOPIC}(?!{any_of(_OPEN)}\b)(?!\W)(?!(?:[^ ]+ )*?{any_of(_SAYING)}\b)[^\s:(){{}}<>=;$_\\]+(?: "
            rf"[^\s:{{}}<>=;$_\\]+){{0,11}}$"
        ),
    ),
)
