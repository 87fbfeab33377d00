"""Ways of taking something back."""

from __future__ import annotations

from models.language.facts import vocabulary

_NAMED = r"(?-i:[A-Z\u00c0-\u00de])[\w'&-]*(?: (?-i:[A-Z\u00c0-\u00de])[\w'&-]*){0,3}"
_PET = "|".join(sorted(vocabulary.PETS, key=len, reverse=True))
_RULE = r"(?:rule|instruction|thing|request|preference|bit|part)"

WAYS: tuple[tuple[str, str, str], ...] = (
    (
        "left/leaving",
        rf"i(?:'ve)? (?:just |recently |finally )?left (?:my job at )?(?P<v>{_NAMED})(?!.*\b(?:at \d|with|early)\b)",
        r"I left \g<v>",
    ),
    ("anymore/more/longer", rf"i'm not (?:living )?in (?P<v>{_NAMED}) anymore", r"I don't live in \g<v> anymore"),
    (
        "working/work",
        r"i(?:'ve| have)? (?:stopped|quit|finished) working (?:at|for) (?P<v>.+)",
        r"I don't work at \g<v> anymore",
    ),
    (
        "number/email/phone/address/mail",
        (
            r"(?:my|the|that) (?:old )?(?P<v>(?:phone |e-?mail |home |street )?(?:number|e-?mail|phone|"
            r"address))(?: (?:i gave you|you have|on file))? (?:is (?:dead|gone|no more|obsolete|disconnected|"
            r"no longer .+|not (?:valid|active|mine|current).*)|no longer .+|stopped working|doesn't (?:work|"
            r"exist).*|isn't (?:mine|valid|active).*)"
        ),
        r"forget my \g<v>",
    ),
    (
        "rule/instruction/request/preference/thing/bit",
        (
            rf"(?:scrap|drop|lift|cancel|forget|ditch|undo|revoke|ignore)(?: about)? (?:the|that|my) (?:\w+ "
            rf")?{_RULE} (?:about|on|for|with|where|to|that)(?: (?:always|never|only|using|answering|you))* "
            rf"(?P<v>.+)"
        ),
        r"forget the rule about \g<v>",
    ),
    (
        "again",
        r"i'm (?:back to )?eating (?P<v>meat|fish|dairy|gluten|eggs|pork|everything) again",
        r"I eat \g<v> again",
    ),
    ("outgrew/outgrown", r"i(?:'ve)? (?:outgrew|outgrown) my (?P<v>[\w ]{2,30}) allergy", r"forget my \g<v> allergy"),
    (
        "allergy",
        (
            r"my (?P<v>[\w ]{2,30}) allergy (?:is gone|went away|has gone|turned out .*|disappeared|was a "
            r"misdiagnosis.*|isn't real)"
        ),
        r"forget my \g<v> allergy",
    ),
    ("moved", r"(?P<v>i|we)(?:'ve)? (?:just |recently )?moved out\b(?! of my parents).*", r"\g<v> moved out"),
    (
        "records/list/files/file/notes/memory/database",
        (
            r"(?:please )?(?:take|strike|scrub|wipe|drop|get) my (?P<v>[\w ]{2,30}?) (?:off|from|out of) "
            r"(?:your|the) (?:\w+ )?(?:records?|list|files?|notes?|memory|database|system)"
        ),
        r"forget my \g<v>",
    ),
    (
        "about",
        (
            r"(?:remove|delete|erase|forget|drop|clear|wipe) (?:whatever|anything|everything|all|what|any "
            r"notes?|any facts?)(?: that)?(?: you(?:'ve)? (?:saved|have|know|stored|noted|wrote|remember|got|"
            r"kept|recorded)(?: down| saved| stored)?)? (?:about|on|regarding) (?P<v>my .+)"
        ),
        r"forget \g<v>",
    ),
    (
        "sold/rehomed/lost/died/put/buried",
        rf"(?:i|we) (?:had to )?(?:sold|sell|rehomed|rehome|lost|buried) (?:my|our) (?P<v>{_PET})\b",
        r"we rehomed our \g<v>",
    ),
    ("put", rf"(?:i|we) (?:had to put|put) (?:my|our) (?P<v>{_PET}) (?:down|to sleep)\b", r"we rehomed our \g<v>"),
    (
        "keep/store/save/remember/hold/need",
        (
            r"(?:i(?:'d)? (?:don't want|rather not have|'d rather not have|would rather not have) you (?:to "
            r")?|(?:please )?don't |you don't need to |you needn't |no need to )(?:keep|store|save|remember|"
            r"hold on to|know|retain)(?:ing)? my (?P<v>[\w ]{2,30})"
        ),
        r"forget my \g<v>",
    ),
    (
        "gone/back/longer/stopped/quit/off",
        (
            r"i(?:'m| am|'ve gone|'ve come) (?:off|back from) (?:being )?(?:the |my )?(?P<v>vegan|vegetarian|"
            r"keto|kosher|halal|pescatarian|paleo)\b(?: diet| thing)?"
        ),
        r"I'm no longer \g<v>",
    ),
)
"""Words of which one must be there, the clause, and what it says plainly."""
