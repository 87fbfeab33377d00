"""Ways of saying what one prefers, uses, and has for a favourite."""

from __future__ import annotations

from models.language.facts import vocabulary

_LANGUAGES = "|".join(
    sorted(
        (w.replace("+", r"\+") for w in vocabulary.PROGRAMMING_LANGUAGES | vocabulary.NATURAL_LANGUAGES),
        key=len,
        reverse=True,
    )
)
_EDITORS = "|".join(sorted((*vocabulary.EDITORS, "vs code", "vscode"), key=len, reverse=True)).replace("+", r"\+")
_SYSTEMS = "|".join(sorted(vocabulary.OPERATING_SYSTEMS, key=len, reverse=True))
_UNIT = "|".join(sorted(vocabulary.UNITS, key=len, reverse=True))
_ZONE = r"(?:utc|gmt|cet|cest|eet|est|edt|pst|pdt|cst|mst|ist|jst|bst|aest|(?:eastern|pacific|central|mountain)\b)"

_TOOLS = "/".join((*sorted(vocabulary.EDITORS), "vs"))
_LANGUAGE_WORDS = "/".join(sorted(vocabulary.PROGRAMMING_LANGUAGES | vocabulary.NATURAL_LANGUAGES))
_ZONE_WORDS = "utc/gmt/cet/cest/eet/est/edt/pst/pdt/cst/mst/ist/jst/bst/aest/eastern/pacific/central/mountain"

WAYS: tuple[tuple[str, str, str], ...] = (
    # Languages, tools, units
    (
        "reach/turn/default/stick",
        (
            rf"i(?:'ll)? (?:always |usually |mostly |still |by default )*(?:reach for|turn to|default to|stick "
            rf"(?:to|with)|go (?:for|with)) (?P<v>(?:{_LANGUAGES}|{_EDITORS}))(?![\w-])"
        ),
        r"I prefer \g<v>",
    ),
    (
        _LANGUAGE_WORDS,
        (
            rf"(?:(?:all|most|nearly all|almost all) (?:of )?)?(?:my|our) (?:own )?(?:code(?:base)?|projects|"
            rf"work|programming|scripts|stack|side projects|services|backend)(?: is| are|'s)(?: all| mostly| "
            rf"mainly| pure| entirely| in| written)* (?P<v>{_LANGUAGES})(?![\w-])"
        ),
        r"I prefer \g<v>",
    ),
    (
        "comfortable/home/fluent/confident",
        (
            rf"i'm (?:far |much |way )?(?:more|most) (?:comfortable|at home|fluent|confident) (?:in|with|"
            rf"speaking|writing|using) (?P<v>{_LANGUAGES})(?![\w-])"
        ),
        r"I prefer \g<v>",
    ),
    (
        _LANGUAGE_WORDS,
        (
            rf"(?P<v>{_LANGUAGES})(?: is| works| feels) (?:much |far |way )?(?:easier|better|best|easiest|more "
            rf"comfortable) for me"
        ),
        r"I prefer \g<v>",
    ),
    (
        _TOOLS,
        (
            rf"i (?:do )?(?:all |most of |nearly all )?(?:of )?my (?:editing|coding|writing|dev\w*|programming|"
            rf"work|notes) (?:in|on|with) (?P<v>{_EDITORS})\b"
        ),
        r"I use \g<v>",
    ),
    (_TOOLS, rf"i (?:basically |practically |pretty much )?live (?:in|inside) (?P<v>{_EDITORS})\b", r"I use \g<v>"),
    (
        "editor/ide",
        rf"(?P<v>{_EDITORS}) (?:is|has been) (?:the|my) (?:only |main )?(?:editor|ide)\b.*",
        r"my editor is \g<v>",
    ),
    (
        "laptop/computer/desktop/pc/machine/workstation/runs/running",
        (
            rf"(?:my|our) (?:\w+ )?(?:laptop|computer|desktop|pc|machine|workstation|box|rig)s? (?:runs?|is "
            rf"running|are running|has|is on|is|uses)(?: on)?(?: an?)? (?P<v>(?:{_SYSTEMS})\b.{{0,20}})"
        ),
        r"I use \g<v>",
    ),
    (
        _ZONE_WORDS,
        (
            rf"(?:(?:all )?my (?:times|clock|calendar|schedule|hours)|times for me)(?: is| are| runs?)(?: "
            rf"all)?(?: in| on| set to)* (?P<v>{_ZONE}\S*(?: time)?)"
        ),
        r"my timezone is \g<v>",
    ),
    (
        _ZONE_WORDS,
        rf"i (?:live|work|run|operate) (?:on|in) (?P<v>{_ZONE}\S*)(?: time)?(?: zone)?$",
        r"my timezone is \g<v>",
    ),
    (_ZONE_WORDS, rf"i'm (?:over )?(?:on|in) (?P<v>{_ZONE}\S*)(?: time)?(?: zone)?$", r"my timezone is \g<v>"),
    (
        "/".join(sorted(vocabulary.UNITS)),
        (
            rf"i (?:always |only |still |just |can only )*(?:think|measure|cook|calculate|weigh (?:things|"
            rf"everything)|count|bake) in (?P<v>{_UNIT})\b"
        ),
        r"I prefer \g<v>",
    ),
    (
        "easier/better/best/easiest",
        (
            r"(?P<v>(?!(?:that|this|it|which|what|anything|monday|tuesday|wednesday|thursday|friday|saturday|"
            r"sunday|weekend|weekday|morning|evening|afternoon|night)s?\b)[\w -]{3,40}?)"
            r" (?:works?|is|are|suits?)(?: (?:much|way|far|always|usually|so much|me))*(?: best| better| "
            r"easier| easiest)+(?: (?:to|for) (?!me\b)\w+)? ?for (?:me|my \w+)\b.*"
        ),
        r"I prefer \g<v>",
    ),
    (
        "over",
        (
            r"(?P<v>[\w+# -]{2,30}? over [\w+# -]{2,30}?)(?: for me)?,? (?:always|any ?day|every time|all "
            r"day(?: long)?|any time|for me)\b.*"
        ),
        r"I prefer \g<v>",
    ),
    (
        "way",
        rf"(?P<v>{_LANGUAGES}|{_EDITORS}|{_SYSTEMS}|dark mode|light mode|tabs|spaces|metric) all the way",
        r"I prefer \g<v>",
    ),
    (
        "team",
        (
            r"(?:i'm )?(?:firmly |definitely |very much )?(?:on )?team (?P<v>tabs|spaces|vim|emacs|dark mode|"
            r"light mode|metric|linux|rust|python)\b"
        ),
        r"I prefer \g<v>",
    ),
    (
        "learn/respond/understand/absorb/read",
        (
            r"i (?:learn|respond|understand things|absorb things|read|do) (?:much )?(?:best|better|faster) "
            r"(?:with|from|through|to|by|when i get) (?P<v>.+)"
        ),
        r"I like answers with \g<v>",
    ),
    (
        "when",
        (
            r"i (?:like|love|prefer|appreciate) it when (?:you're|you are|people are|answers are|your answers "
            r"are) (?P<v>.+)"
        ),
        r"I like a \g<v> tone",
    ),
    (
        "answers/replies/responses/explanations/things/summaries",
        (
            r"i (?:like|love|want|need|prefer|enjoy)(?: to (?:get|have|see|read))? (?:my |your |the "
            r")?(?P<n>answers|replies|responses|explanations|things|summaries|instructions)(?: given| written|"
            r" presented| laid out| to be| kept)? (?:as|in|with|to be|kept)? ?(?P<v>(?:bullet|table|numbered|"
            r"markdown|plain|short|brief|concise|detailed|long|step|list|paragraph|prose|json).*)"
        ),
        r"I prefer \g<v> \g<n>",
    ),
    # Favourites
    (
        "go/usual",
        (
            r"my (?:go-to|usual) (?P<n>(?!language|editor|ide|os)[\w ]{3,24}?)(?: is| are|'s| has to be| "
            r"tends to be| will always be) (?P<v>.+)"
        ),
        r"my favourite \g<n> is \g<v>",
    ),
    (
        "top/number/best-loved/ultimate",
        (
            r"my (?:number one|top|ultimate|best) (?P<n>film|movie|book|band|song|album|game|show|author|"
            r"artist|restaurant|dish|food|drink|city|holiday|series|tv show|sport|team|composer|podcast)(?: "
            r"ever| of all time)?(?: is| are|'s) (?P<v>.+)"
        ),
        r"my favourite \g<n> is \g<v>",
    ),
    (
        "favourite/favorite",
        r"(?P<v>[\w' -]{3,40}?) (?:is|are) my (?:absolute |all-time |total )?favourite(?: ever| of all)?$",
        r"I love \g<v>",
    ),
)
"""Words of which one must be there, the clause, and what it says plainly."""
