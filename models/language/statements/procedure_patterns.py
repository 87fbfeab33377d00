"""Patterns of procedures: to reach something, do this; first this, then that."""

from __future__ import annotations

from models.language.statements.wording import DO, STEP, SURE, Wording, any_of

_DOING = any_of(
    "ringing asking pressing sending filling running pushing merging calling tagging opening typing executing "
    "clicking setting cloning using starting"
)
_BEGUN = (
    "deploy release merge tag push bump restart stop start drain install rebuild flush scale rotate reset switch "
    "turn mix "
    "boil bake soak press plug unplug thaw pour"
)
"""What nobody asks of an assistant that writes: "check the text, then fix it" is a task."""
PROCEDURES: tuple[Wording, ...] = (
    (
        SURE,
        "to",
        (
            rf"^(?:in order )?to (?!be |me\b|us\b)[^,]{{3,80}}, (?:(?:you|we|just|simply|first|always|please"
            rf"|can|should|must|need to|have to) )*{DO}\b"
        ),
    ),
    (
        SURE,
        "first start then",
        (
            rf"^(?:first|start by|begin by|begin with),? .{{3,120}}?(?:, |\band |; )then,? \w|^first,? {DO} "
            rf".* (?:after that|afterwards)"
        ),
    ),
    (
        SURE,
        "when if whenever before after for once",
        (
            rf"^(?:when|if|whenever|before|after|for|once) [^,]{{3,80}}, (?:(?:always|first|simply|just) "
            rf")*{DO} (?!me\b|you\b|it\?)\w"
        ),
    ),
    (
        SURE,
        "like works goes go steps",
        r"\b(?:works?|goes?|(?:is|are) done) (?:like this|as follows) ?:|^(?:the )?steps (?:to|for) .* are\b",
    ),
    (
        SURE,
        "before after whenever always every",
        rf"^(?:always )?{DO} .* (?:before|after|whenever|every time) \w|^always {DO} \w",
    ),
    (
        SURE,
        "with by using via",
        (
            rf"^(?:you|we) (?!.* from\b.* to\b)(?:can |always |usually )*{DO} .* "
            rf"(?:with [\w./]+ [\w./]+|by {_DOING}|using|via)\b"
            rf"|^(?:you|we) (?:can |always )*{DO} by {_DOING}\b"
        ),
    ),
    (
        SURE,
        "if when whenever for before after once at each every on",
        (
            rf"^(?:(?:if|when|whenever|before|after|once) (?!you (?:give|show|write|answer|reply)\b)[^,:]{{3,80}}[,:]"
            rf"|(?:for|at|on|each|every) [^,:]{{3,60}}[,:]|(?:at|each|every) (?:[\w'-]+ ){{1,6}}?(?={STEP} "
            rf"(?:the|all|both|a)\b))"
            rf" ?(?:(?:always|first|simply|just|you|we|have to|must|then) )*{STEP} (?!me\b|you\b|us\b|it\?)\w"
        ),
    ),
    (
        SURE,
        "to",
        (
            rf"^(?:in order )?to (?!be |me\b|us\b)[\w' -]{{3,60}}? (?:you |we )?(?:just|simply|only need to|only "
            rf"have to) "
            rf"{STEP} \w"
        ),
    ),
    (
        SURE,
        "to",
        (
            rf"^(?:in order )?to (?!be |me\b|us\b)[^,]{{3,80}}, (?:(?:you|we|just|simply|first|always) )*{STEP} "
            rf"(?!me\b|you\b)\w"
        ),
    ),
    (
        SURE,
        "for",
        rf"^for [\w-]+(?: [\w-]+){{0,2}},? (?:go to|call|ask|write to|open|run|take) [^,]{{2,60}}, (?:then )?{STEP} \w",
    ),
    (SURE, "then", rf"^{any_of(_BEGUN)} [^,;]{{2,80}},? (?:and )?then {STEP} \w"),
    (
        SURE,
        "then and",
        (
            rf"^{STEP}\b [^,;]{{2,60}}(?:, | and |, and )(?:then )?{STEP}\b.*\b(?:then|and|finally)\b(?: only)?(?: "
            rf"then)? {STEP}\b"
        ),
    ),
)
