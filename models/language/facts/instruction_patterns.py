"""Ways of giving a standing order."""

from __future__ import annotations

from models.language.facts import vocabulary

_LANGUAGE = "|".join(sorted(vocabulary.NATURAL_LANGUAGES))
_ANSWERS = r"(?:answers?|repl(?:y|ies)|responses?|messages?|explanations?|summar(?:y|ies)|outputs?)"
_ALL = (
    rf"(?:(?:all|every|each)(?: of)? ?(?:your |the |my |single |future )*{_ANSWERS}|everything you "
    rf"(?:write|send|say|give me)|your {_ANSWERS})"
)

WAYS: tuple[tuple[str, str, str], ...] = (
    (
        "answer/answers/reply/replies/response/responses/everything/messages",
        (
            rf"(?:i (?:want|need|would like|expect|prefer|'d like)|i'd (?:like|prefer|love)) {_ALL} (?:to "
            rf"(?:always )?(?:be|come|stay) )?(?:only )?in (?P<v>(?:\w+ )?(?:{_LANGUAGE}))\b.*"
        ),
        r"always answer in \g<v>",
    ),
    (
        "answer/answers/reply/replies/response/responses/everything/messages",
        (
            rf"{_ALL} (?:should|must|have to|has to|needs? to|ought to|are to|is to|can|in|always)(?: "
            rf"(?:always|only|please|all))* ?(?:be|come|stay|be written|in)* ?(?:only )?(?:in )?(?P<v>(?:\w+ "
            rf")?(?:{_LANGUAGE}))\b.*"
        ),
        r"always answer in \g<v>",
    ),
    (
        "answer/answers/reply/replies/response/responses/everything/messages",
        (
            rf"(?:i (?:want|need|would like|expect)|i'd (?:like|love)) {_ALL} (?:to (?:always )?(?:be|stay) "
            rf")?(?P<v>(?!in\b).+)"
        ),
        r"always keep your answers \g<v>",
    ),
    (
        "answers/replies/responses/answer/reply/response",
        (
            rf"{_ALL} (?:should|must|have to|has to|needs? to|ought to)(?: always| please| all)* (?:be|stay|"
            rf"remain|come) (?P<v>.+)"
        ),
        r"always keep your answers \g<v>",
    ),
    (
        "answers/replies/responses/answer/reply/response",
        (
            rf"{_ALL} (?:should|must|have to|has to|needs? to|ought to)(?: always| please)* (?P<v>(?!be\b|"
            rf"not\b|have been\b)\w+ .+)"
        ),
        r"always \g<v>",
    ),
    (
        "answers/replies/responses",
        (
            rf"(?:i (?:want|need|like|prefer)|i'd (?:like|prefer)) (?:your |my |to get )?{_ANSWERS} (?:of|"
            rf"within|under|below|no longer than|shorter than|with) (?P<v>.*\b(?:words?|sentences?|lines?|"
            rf"paragraphs?)\b.*)"
        ),
        r"keep your answers to \g<v>",
    ),
    (
        "never",
        (
            r"i never(?: ever)? (?:want|need|wish|expect)(?: you)? to (?:see|get|read|hear|receive|find) "
            r"(?:any |an? )?(?P<v>.+)"
        ),
        r"never use \g<v>",
    ),
    (
        "don't/never/dont",
        (
            r"i (?:don't|never) (?:want|need|like)(?: to (?:see|get|read|hear))? (?:any )?(?P<v>(?:emojis?|"
            r"smileys|exclamation marks|disclaimers|caveats|hashtags|markdown|small talk|pep talks?|filler|"
            r"fluff|jargon|slang|comments|moralizing|lectures|apologies|preamble|bullet points|bullets)\b.*)"
        ),
        r"never use \g<v>",
    ),
    (
        "don't/never/dont",
        (
            r"i (?:don't|do not|never) (?:want|need|like|wish)(?: for)? you(?: to)? (?P<v>(?!to\b).+?)(?P<m> "
            r"(?:all the time|every time|ever|anymore|in (?:your|any) \w+|each time|constantly|so much))$"
        ),
        r"never \g<v>",
    ),
    (
        "always/generally",
        r"i(?:'d)? (?:always|generally) (?:want|need|expect|like|prefer) you to (?P<v>.+)",
        r"always \g<v>",
    ),
    ("always", r"i(?:'d)? (?:want|need|expect|would like|like|ask) you to always (?P<v>.+)", r"always \g<v>"),
    ("expect", r"i expect you to (?P<v>\w+ .+? before .+)", r"always \g<v>"),
    ("spare", r"spare me (?:the |your |any )?(?P<v>.+)", r"skip the \g<v>"),
    ("bother", r"(?:don't|no need to) bother (?:with |me with )?(?:any |the |your )?(?P<v>.+)", r"skip the \g<v>"),
    (
        "free/hold/lose/ditch/cut",
        (
            r"(?:hold|lose|ditch|cut|kill|save|leave|forget) (?:out )?(?:the|all the|your) (?P<v>(?:\w+ "
            r")?(?:emojis?|smileys|exclamation marks|disclaimers|caveats|hashtags|small talk|pep talks?|"
            r"filler|fluff|jargon|slang|moralizing|lectures?|apologies|preamble|pleasantries|flattery|"
            r"compliments|intro|intros|warnings|bullet points)\b.*)"
        ),
        r"skip the \g<v>",
    ),
    (
        "keep/leave",
        (
            r"(?:keep|leave) (?P<v>(?:emojis?|smileys|slang|jargon|politics|religion|jokes|disclaimers|"
            r"hashtags|opinions|small talk|bullet points|markdown)) out of (?P<r>(?:your|all|every|the|our|it|"
            r"this)\b.*)"
        ),
        r"never use \g<v> in \g<r>",
    ),
    ("habit", r"make it a (?:habit|rule|point|practice) to (?P<v>.+)", r"always \g<v>"),
    ("habit/rule/point", r"(?:please )?get (?:in|into) the habit of (?P<v>\w+ing .+)", r"always be \g<v>"),
    (
        "address/treat",
        (
            r"(?:address|treat|talk to|speak to|write to) me (?P<v>formally|informally|casually|politely|"
            r"formal|directly|bluntly)\b(?P<r>.*)"
        ),
        r"be \g<v> with me always",
    ),
    (
        "address/use",
        (
            r"(?:use|address me (?:with|using)) (?:the )?(?P<v>formal|informal|polite) (?:you|form|address|"
            r"sie|vous|usted)\b.*"
        ),
        r"be \g<v> with me always",
    ),
    ("treat", r"(?P<v>treat me (?:like|as) .+)", r"always \g<v>"),
    (
        "temperatures/distances/weights/measurements/units/lengths/amounts/quantities",
        (
            rf"(?:all |any |your )?(?:temperatures?|distances?|weights?|measurements?|units|lengths?|amounts?|"
            rf"quantities|sizes|numbers)(?: (?:should|must|have to))?(?: always| only| be| please| given)* in "
            rf"(?P<v>{'|'.join(sorted(vocabulary.UNITS, key=len, reverse=True))})\b.*"
        ),
        r"always use \g<v> units",
    ),
    (
        "code/snippets",
        (
            r"(?:all|any|every|your)(?: of)?(?: your| the| my)? (?:code|snippets?|functions?|scripts?)(?: you "
            r"(?:write|give me|send))? (?:should|must|has to|needs to|have to|needs)(?: always)? (?:have|"
            r"include|come with|contain|be) (?P<v>.*comment.*)"
        ),
        r"always write code with \g<v>",
    ),
    (
        "source/sources/reference/references/citation/citations/link",
        r"(?:back|support) (?:up )?(?P<v>.+ with (?:a |an |your )?(?:sources?|references?|citations?|links?).*)",
        r"always cite a source for \g<v>",
    ),
    (
        "source/sources/reference/references/citation/citations",
        (
            r"i (?:always )?(?:want|need|expect|would like) (?:to see )?(?:a |your )?(?:sources?|references?|"
            r"citations?) (?:for|with|behind|whenever|every|each) .+"
        ),
        r"always cite your sources",
    ),
)
"""Words of which one must be there, the clause, and what it says plainly."""
