"""Patterns of goals and preferences."""

from __future__ import annotations

from models.language.statements.wording import (
    AMOUNT,
    DATE,
    HOW,
    NO_RULE,
    OTHER,
    SEED_GOAL,
    SEED_PREFERENCE,
    SURE,
    WE,
    Wording,
    any_of,
)

_TALK = "hear see find_out discuss talk decide know learn meet ask get_back be_back"
GOALS: tuple[Wording, ...] = (
    (
        SEED_GOAL,
        "goal goals objective objectives aim aims target targets mission",
        (
            r"\b(?:our|my|the|this|main|project's|sprint's|quarter's) (?:[\w'-]+ ){0,3}?(?:goal|objective|aim"
            r"|target|mission)s?"
            r"(?: (?:of|for|with|behind|in|this|next) [\w' ]{1,40}?)? ?(?:is|are|remains?|isn't|:)(?= ?\S)(?! "
            r"(?:missing|ignored|set|reached|met|null|empty|unclear|clear|simple|obvious|open)\b)"
            r"|^(?:goal|objective|aim|target)s? ?:"
        ),
    ),
    (
        SEED_GOAL,
        "aim aims aiming target targeting",
        (
            rf"{WE}{HOW}(?:'re|'m| are| am| is)? (?:aim|aims|aiming|target|targeting)(?: for| to| at)? \w"
            rf"|^what {WE}(?:'re|'m| are| am) aiming (?:at|for) is\b"
        ),
    ),
    (
        SURE,
        "want intend plan hope",
        (
            rf"{WE}{HOW} (?:want|intend|plan|hope)s? to (?:reach|hit|launch|ship|achieve|grow|double|halve"
            rf"|reduce|cut|increase|break even|become|win|open|release|finish|be live|go live)\b"
        ),
    ),
    (
        SURE,
        "success working",
        r"^success (?:for us |here )?means\b|\b(?:we're|we are|i'm) working towards? (?!it|that)\w",
    ),
    (
        SURE,
        "point purpose",
        (
            r"^(?:the|our) (?:\w+ )?(?:point|purpose) of (?:the|this|our) (?:project|system|product|app"
            r"|rewrite|work|effort) is\b"
        ),
    ),
    (
        SEED_GOAL,
        "goal objective aim aims",
        r"\b(?P<other>(?:their|his|her|\w+'s) )(?:[\w'-]+ ){0,3}?(?:goal|objective|aim)s? (?:is|are)\b",
    ),
    (SEED_GOAL, "aims", rf"{OTHER} aims (?:to|for|at)\b"),
    (
        SURE,
        "want want's love like need",
        (
            rf"{WE}{HOW} (?:want|love|like|need) (?!you\b)(?:[^;]{{3,80}}? (?:by|before|until|within) {DATE}"
            rf"|[^,;]{{2,50}} (?:below|under|above|over|down to|up to|at least|at most) \S*\d)"
        ),
    ),
    (
        SURE,
        "want",
        (
            rf"{WE}{HOW} want (?:the|our|my|every\w*|each|all|people|them|users|visitors)"
            rf"(?! (?:code|function|output|answer|text|list|table|script|result|reply)\b)(?: [\w'-]+){{0,4}} to \w"
        ),
    ),
    (SURE, "want", rf"^(?:(?:we|i) )?want (?:to )?\w[^,;]* (?:by|before|until|within) {DATE}"),
    (
        SURE,
        "hope hoping intend aiming",
        (
            rf"(?:^|{WE}{HOW}(?:'re|'m| are| am)? )(?:hoping|aiming) (?:to|for) (?!(?:see|hear|find out|it|that"
            rf"|the best)\b)\w"
            rf"|{WE}{HOW} (?:hope|intend) to (?!{any_of(_TALK)}\b)\w"
        ),
    ),
    (
        SURE,
        "plan dream hope idea ambition vision wish priority thing",
        (
            r"^(?:(?:the|our|my) )?(?:(?:main|big|biggest|top|whole|long-term|first) )?(?:plan|dream|hope|idea|ambition"
            r"|vision|wish|priority|thing)(?: (?:here|now|this \w+|for [\w ]{2,20}))?(?: is| are|:| =)"
            r"(?= (?:to|that|an?|for|\d|getting|having|making)\b| getting)(?! that (?:is|was))"
            r"(?<!^the thing is)(?<!^thing is)"
        ),
    ),
    (
        SURE,
        "what",
        (
            r"^what (?:we|i)(?:'re|'m| are| am)?(?: really| all)? (?:after|hoping for|hope for|working towards"
            r"|trying to \w+|want to (?:achieve|reach)) is\b"
        ),
    ),
    (
        SURE,
        "meant intended designed aims seeks tries supposed",
        (
            r"^(?:the|this|our) (?:[\w'-]+ ){1,4}?(?:(?:is|are) (?:meant|intended|designed) to (?!be\b)"
            r"|(?:aims|seeks|sets out) to )\w"
        ),
    ),
    (
        SURE,
        "get bring cut reduce raise push",
        (
            rf"(?:^|{WE}{HOW} |{WE}(?:'re| are) )(?:need to|have to|want to|trying to|working to) "
            rf"(?:get|bring|cut|reduce|raise|push) [^,;]{{2,60}} (?:under|below|above|over|down to|up to|to) {AMOUNT}"
        ),
    ),
    (
        SURE,
        "trying",
        rf"(?:^|{WE}(?:'re| are) )trying to (?:get|reach|win|find|sell|raise|attract) (?:at least |about )?{AMOUNT}",
    ),
    (SURE, "point purpose", r"^(?:the|our) (?:\w+ )?(?:point|purpose) of [\w ]{3,40} is (?:to|that) \w"),
    (
        SURE,
        "should",
        r"^(?:by|at the end of|after) [^,]{3,40}?,? [^,]{2,40}? should (?:be able to|know|have|feel|understand) \w",
    ),
)
PREFERENCES: tuple[Wording, ...] = (
    (
        SEED_PREFERENCE,
        "prefer prefers like likes want wants need needs love dislike hate rather favour favor loves",
        (
            rf"{WE}{HOW} (?:don't |do not )?(?:prefer|like|want|need|love|dislike|hate|favou?r)s?(?! (?:to "
            rf"(?:know|ask|see|hear|understand|talk|say|thank|discuss|show|check|tell|go|get back|learn|find"
            rf"|look)"
            r"|you to|him\b|her\b|the \w+ to\b|help\b|it[,.!]?$|it so|that[,.!]?$|this[,.!]?$|how\b|your\b"
            r"|the (?:idea|sound|look)|an? (?:\w+ )?(?:synonym|word|title|list|summary|translation|example|idea"
            r"|template|draft|letter|sentence|coffee|break|minute|moment|hand|nap|holiday"
            r"|vacation|drink|second|hint|favour|favor|bit|pause|beer|tea)\b"
            r"|some (?:help|time|sleep|advice|coffee)|nothing|not))(?= \w| '?\")"
            rf"|{WE}(?:'d| would|'d much)? rather (?!not (?:say|talk))\w"
        ),
    ),
    (SURE, "stand", rf"{WE} (?:can't|cannot) stand (?!it|this|that|how|up)\w"),
    (SURE, "important", r"\bimportant (?:to|for) (?:me|us) (?:that|to|is)\b"),
    (
        SURE,
        "favourite favorite preferred",
        r"\b(?:my|our) (?:\w+ )?(?:favou?rite|preferred) (?:[\w-]+ ){1,2}?(?:is|are)\b",
    ),
    (SEED_PREFERENCE, "want need prefer", r"^what (?:i|we) (?:really )?(?:want|need|prefer) is\b"),
    (
        SEED_PREFERENCE,
        "prefers prefer likes like wants want needs need",
        rf"{OTHER} (?:really |all |also |usually )?(?:prefers?|likes?|wants?|needs?) (?!to be )\w",
    ),
    (
        SURE,
        "best better",
        (
            r"\b(?:works?|suits?|helps?|reads?)(?: for)? (?:me|us)?(?: the)? ?(?:best|better)(?: for (?:me"
            r"|us))?\b(?<!works better)"
        ),
    ),
    (
        SURE,
        "no",
        rf"^no (?!{any_of(NO_RULE)}\b)[\w-]+(?: [\w'-]+){{0,3}},? (?:for (?:me|us)\b|please\b)",
    ),
    (
        SURE,
        "please",
        (
            r"^please (?:always|never|don't|do not|avoid|stop|stick to|keep)\b (?!(?:hesitate|worry|mind|go"
            r"|laugh|ask|tell"
            r"|forget|panic)\b)\w|^(?:[\w' -]{2,40},? (?:not|instead of|over|rather than|no) [\w' -]{2,40}"
            r"|(?:don't|do not|avoid|stop|less|more|fewer|only)\b .{3,80}),? please$"
        ),
    ),
    (
        SURE,
        "when whenever if",
        (
            r"^(?:when|whenever|if) you (?:give|show|write|send|answer|explain|reply|review|suggest|make|post|quote)\b"
            r".{0,60}?,? (?:(?:please|just|always|then) )*(?:skip|leave|use|keep|don't|do not|add|put|make"
            r"|include|avoid"
            r"|no|give|never) \w"
        ),
    ),
    (
        SURE,
        "fan fans",
        r"^(?:(?:i'm|i am|we're|we are) )?(?:not )?(?:really )?(?:an? )?(?:big |huge |great )?fans? of \w",
    ),
    (SURE, "rather", r"^rather [\w ,'-]{3,80} than \w"),
    (SURE, "easier nicer clearer", r"\b(?:easier|nicer|clearer|more (?:readable|useful|comfortable)) for (?:me|us)\b"),
    (
        SURE,
        "don't do",
        (
            r"^(?:don't|do not) (?:ever )?(?:call|use|add|write|start|end|put|give|send|show|explain"
            r"|apologi[sz]e|repeat|wrap|say)\b"
            r" \w(?!.*\b(?:this one|this time|here|now|yet|anything)\b)"
        ),
    ),
    (SURE, "answer reply speak talk", r"^(?:please )?(?:answer|reply|speak|talk)(?: to)?(?: me)? in \w"),
    (SURE, "from", r"^(?:from now on,? \w|(?!we\b|i\b).*\byour?\b.* from now on\b)"),
)
