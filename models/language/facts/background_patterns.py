"""Ways of saying what one's life is: nation, language, work, family."""

from __future__ import annotations

from models.language.facts import vocabulary

_NAMED = r"(?-i:[A-Z\u00c0-\u00de])[\w'.&-]*(?:,? (?-i:[A-Z\u00c0-\u00de])[\w'.&-]*){0,3}"
"""Words with a capital: a place, a person, a firm."""
_PLACE = rf"(?:the (?=(?-i:[A-Z])))?{_NAMED}"
_LANGUAGE = "|".join(sorted(vocabulary.NATURAL_LANGUAGES))
_FIELD = (
    r"nursing|it|sales|marketing|finance|hr|construction|logistics|retail|law|medicine|education|insurance|banking"
    r"|advertising|publishing|hospitality|real estate|tech|accounting|consulting|pharma|procurement|journalism"
    r"|teaching|farming|healthcare|catering|manufacturing|software|social work|childcare"
)

WAYS: tuple[tuple[str, str, str], ...] = (
    # Nationality and language
    (
        "passport/citizenship",
        (
            r"i(?:'ve)? (?:just )?(?:hold|have|got|travel on|carry)(?: an?| my)? (?P<v>[\w-]+) (?:passport|"
            r"citizenship|nationality)"
        ),
        r"I'm a \g<v> citizen",
    ),
    ("passport", r"my passport is (?P<v>\w+)", r"I'm a \g<v> citizen"),
    (
        "speaking/grew/raised",
        rf"i(?:'ve)? (?:was raised|grew up|been) (?:speaking|with) (?P<v>{_LANGUAGE})\b",
        r"my native language is \g<v>",
    ),
    ("native", rf"i'm a native (?:speaker of )?(?P<v>{_LANGUAGE})\b", r"my native language is \g<v>"),
    ("native", rf"native (?P<v>{_LANGUAGE}) speaker\b", r"my native language is \g<v>"),
    (
        "native/first/mother",
        rf"\w+ (?:isn't|is not) my (?:native|first|mother) (?:language|tongue),? (?:it's )?(?P<v>{_LANGUAGE})\b",
        r"my native language is \g<v>",
    ),
    ("spoke/speak", rf"(?:we|i) (?:only )?(?:spoke|speak) (?P<v>{_LANGUAGE}) at home", r"my native language is \g<v>"),
    # Work
    (
        "from",
        (
            rf"(?:(?:quick |another |small )?(?:question|hello|hi|greetings|help|request)s? )?from an? "
            rf"(?P<v>[\w -]{{3,40}}? (?:in|from|at) {_PLACE})"
        ),
        r"I'm a \g<v>",
    ),
    ("do", rf"i do (?:the )?[\w -]{{2,24}}? (?:for|at) (?P<v>{_NAMED})", r"I work for \g<v>"),
    ("work", rf"(?:i|we) work (?:in|on|behind) the [\w -]{{3,30}}? (?:at|of|for) (?P<v>{_NAMED})", r"I work at \g<v>"),
    ("living", r"i (?:earn|make) (?:my|a|our) living (?:as|being) (?P<v>.+)", r"I work as \g<v>"),
    (
        "trade/profession/training/day/vocation",
        r"by (?:trade|profession|training|day|vocation),? (?P<v>i'm an? .+)",
        r"\g<v>",
    ),
    (
        "trade/profession/training/day",
        r"i'm (?P<v>an? [\w -]{3,40}?) by (?:trade|profession|training|day|vocation)",
        r"I work as \g<v>",
    ),
    ("trade/profession/day/occupation", r"(?P<v>[\w -]{3,30}?) by (?:trade|profession|day)$", r"I work as a \g<v>"),
    ("being/speaking/coming", r"(?:being|speaking as|coming from|talking as) (?P<v>an? .+)", r"I'm \g<v>"),
    ("being", r"being (?P<v>(?!able|honest|fair|clear|that|said|the\b|at\b|in\b|on\b|here).+)", r"I'm \g<v>"),
    ("working", r"working as (?P<v>an? .+)", r"I work as \g<v>"),
    (
        "been",
        r"i(?:'ve)? been (?:working as )?(?P<v>an? .+?) (?:for|since|all my life)\b(?! (?:a|the) while).*",
        r"I'm \g<v>",
    ),
    ("been", rf"i(?:'ve)? been (?:in|working in) (?P<v>{_FIELD}) (?:for|since)\b.*", r"I work in \g<v>"),
    (
        _FIELD.replace("|", "/").replace("it/", "").replace("real estate", "estate"),
        rf"i'm in (?P<v>{_FIELD})(?: here| now| by .+|$)",
        r"I work in \g<v>",
    ),
    ("freelance", r"i freelance as (?P<v>.+)", r"I work as \g<v>"),
    (
        "promoted/made/appointed",
        (
            r"i(?:'ve been| was| got|'ve)(?: just| recently)*(?: been)? (?:promoted to|appointed|made(?= (?:a "
            r"|the )?(?:head|chief|partner|manager|director|lead|senior|team|captain|foreman|supervisor|"
            r"editor|professor|vp|cto|ceo|cfo)\b)) (?:an? |the )?(?P<v>(?!redundant)[\w -]+)"
        ),
        r"I work as \g<v>",
    ),
    (
        "manage/operate/own/run",
        r"i (?:manage|operate|own|run|co-own)(?P<v> (?:an?|my own|our|the)(?: family)? .+)",
        r"I run\g<v>",
    ),
    (
        "been",
        rf"i(?:'ve)? been (?:employed )?(?:with|at|by|working (?:at|for)) (?P<v>{_PLACE})(?P<r> (?:for|since) .+)",
        r"I work at \g<v>",
    ),
    ("employed", r"i'm employed (?:by|at|with) (?P<v>.+)", r"I work for \g<v>"),
    ("hired", rf"i(?:'ve)?(?: just| was| recently| got| been)* hired (?:by|at) (?P<v>{_PLACE})", r"I work for \g<v>"),
    (
        "hired/pays/employs",
        rf"(?P<v>{_PLACE}) (?:hired me|pays my (?:bills|salary|wages|rent)|employs me|is my employer)",
        r"I work for \g<v>",
    ),
    (
        "company/firm/place",
        (
            rf"the (?:company|firm|place|shop|school|bank) (?:where )?i work(?: for| at)?,? (?:is )?(?:called "
            rf")?(?P<v>{_PLACE})"
        ),
        r"I work at \g<v>",
    ),
    ("work", rf"(?:i|we)(?: all)? work (?:over |here |out |up |down )?at (?P<v>{_PLACE}.*)", r"I work at \g<v>"),
    (
        "graduate/alumnus/alumna/alum",
        r"i'm an? (?:\w+ )?(?:graduate|alumn\w+|alum) of (?:the )?(?P<v>.+)",
        r"I graduated from \g<v>",
    ),
    (
        "degree/diploma/master's/bachelor's/phd/mba/doctorate/masters/bachelors",
        (
            r"i(?:'ve)? (?:got|earned|did|finished|completed|received|hold|took) (?:my|an?) "
            r"(?P<v>(?:\w+(?:'s)? )?(?:degree|diploma|master'?s?|bachelor'?s?|ph\.?d|mba|doctorate)\b.* (?:in|"
            r"of|from) .+)"
        ),
        r"I have a \g<v>",
    ),
    (
        "year",
        (
            r"i'm (?:currently )?in (?:my|the) (?:first|second|third|fourth|fifth|final|last) year (?:of|"
            r"studying|doing) (?P<v>.+)"
        ),
        r"I study \g<v>",
    ),
    (
        "reading",
        (
            r"i'm reading (?P<v>(?:law|history|english|classics|medicine|physics|maths|mathematics|ppe|"
            r"chemistry|biology|economics|philosophy) at .+)"
        ),
        r"I study \g<v>",
    ),
    # Family
    (
        "been",
        (
            r"i(?:'ve)? been (?:happily )?(?P<v>(?:married|divorced|single|widowed|engaged)(?: to .+?)?)(?: "
            r"(?:for|since|about|almost|over|now)\b.*|$)"
        ),
        r"I'm \g<v>",
    ),
    (
        "mum/mom/dad/father/mother/parent/mama/papa",
        (
            r"(?:(?:i'm|being|as)(?: an?| the)? |an? )?(?:(?:single|proud|new|working|stay-at-home|busy|tired|"
            r"exhausted|full-time) )*"
            r"(?:mum|mom|dad|father|mother|parent|mama|papa) (?:of|to|with) (?P<v>(?:\d|a|an|one|two|three|"
            r"four|five|six|seven|twin|twins|triplets)\b.*)"
        ),
        r"I'm a mother of \g<v>",
    ),
    (
        "raising",
        r"(?:i'm|we're) (?:\w+ly )?raising (?P<v>(?:\d|a|one|two|three|four|five|six|twins?|triplets)\b.*)",
        r"I have \g<v>",
    ),
    ("owner", r"i'm the (?:\w+ )?(?:owner|human) of (?P<v>an? .+)", r"I have \g<v>"),
    (
        "share/lives",
        r"i share (?:my|a) (?:home|flat|house|life|place|apartment|bed) with (?P<v>(?:an?|two|three) .+)",
        r"I have \g<v>",
    ),
    ("lives/live", r"(?P<v>(?:an?|two|three) .+?) lives? with (?:me|us)\b", r"I have \g<v>"),
    (
        "engaged/married/divorced/separated",
        (
            r"(?:we|we're|i|i'm|my \w+ and i|me and my \w+)(?: are|'re|'ve)?(?: just| finally| now| recently| "
            r"both)*(?: got| getting)? (?P<v>engaged|married)(?P<r> (?!to my (?:job|work)).*|$)"
        ),
        r"I'm \g<v>\g<r>",
    ),
    # Said with "here".
    (
        "here",
        (
            r"(?:an? )?(?P<v>(?!(?:same|not|right|over|up|down|back|still|out|newbie|new|everyone|nothing|and|"
            r"only|it)\b)[a-z0-9][\w+ -]{2,60}?) allergy here$"
        ),
        r"I have a \g<v> allergy",
    ),
    ("here", r"(?:an? )?(?P<v>(?:utc|gmt|cet|eet|est|pst|cst|ist|jst)\S*) here$", r"I'm in \g<v>"),
    (
        "here",
        (
            r"(?:an? |fellow |long-time |big |huge )*(?P<v>(?!(?:same|not|right|over|up|down|back|still|out|"
            r"newbie|new|everyone|nothing|and|only|it|in|around|from|live|i|my)\b)(?-i:[a-z0-9])[\w+'# "
            r"-]{2,60}?) here$"
        ),
        r"I'm a \g<v>",
    ),
    ("here", r"(?P<v>(?-i:[A-Z])[\w+#]+ (?:user|fan|person|guy|dev|developer|programmer)) here$", r"I'm a \g<v>"),
)
"""Words of which one must be there, the clause, and what it says plainly."""
