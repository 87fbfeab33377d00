"""Patterns of entities and facts."""

from __future__ import annotations

from models.language.statements.wording import AMOUNT, DATE, ROLES, SURE, THING, WE, Wording, any_of

_MEASURED = (
    r"(?=[^,;]*(?:\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|dozen|twenty"
    r"|several|many|mostly)\b))"
)
_PARTS = any_of("component service module part subsystem library tool rewrite gateway class package layer application")
_NAME = r"(?P<name>[\w.'-]+(?: [\w.'-]+){0,2})"
_NAMES = r"(?P<name>[\w.'&-]+(?: [\w.'&-]+){0,3}?)"
ENTITIES: tuple[Wording, ...] = (
    (
        SURE,
        "our the",
        (
            rf"^{_NAME} (?:is|are|will be) (?:our (?!(?:problem|goal|aim|target|next|only hope|turn|fault|best "
            rf"option|biggest|favou?rite|preferred|last|decision|plan|deadline)\b)(?:[\w-]+ ?){{1,6}}"
            rf"|the (?:[\w-]+ ){{0,3}}?{ROLES}\b|the (?:\w+ )?rewrite of)"
        ),
    ),
    (
        SURE,
        "our",
        (
            rf"^our (?:[\w-]+ ){{0,3}}?(?:{ROLES}|[\w-]+)(?: (?:at|for|in) (?:the )?\w+)? (?:is|are) "
            rf"(?:called |named )?(?P<value>[\w.'-]+(?: [\w.'-]+){{0,2}})$"
        ),
    ),
    (SURE, "the our", rf"^{_NAME}, (?:the|our) (?:[\w-]+ ){{0,3}}(?:{ROLES}|{_PARTS}), \w"),
    (
        SURE,
        "component service module part subsystem library tool gateway class package layer application",
        (
            rf"^(?:the|our) (?:[\w-]+ ){{1,4}}is (?:the|our|a|an) (?:\w+ )?{_PARTS}(?: of the system)? (?:that"
            rf"|which|for|to)\b"
        ),
    ),
    (
        SURE,
        "leads owns maintains works responsible charge takes manages handles",
        (
            rf"^{_NAME} (?:leads|owns|maintains|works on|is responsible for|is in charge of|takes care of"
            rf"|manages|handles) \w"
        ),
    ),
    (
        SURE,
        "plays runs does do owns teaches chairs coordinates coaches directs drives looks signs built",
        (
            rf"^{_NAMES} (?:plays|runs|does|do|owns|teaches|chairs|coordinates|coaches|directs|drives|looks after"
            rf"|signs off(?: on)?) (?:the|our|all|my|every)\b \w"
        ),
    ),
    (SURE, "is", rf"^{_NAMES} is (?:the|a|an|my) (?:[\w-]+ ){{0,3}}?{ROLES}\b"),
    (
        SURE,
        "is",
        rf"^{_NAMES} is (?:the|an?) (?:[\w-]+ ){{1,4}}?(?:that |which )?(?:we|i)(?:'ve)? [a-z]+",
    ),
    (SURE, "one person who", rf"^{_NAMES} is (?:the (?:one|person)|who) (?:to|we|you|who|that)\b"),
    (SURE, "ask", r"^(?:for|about) [\w ]{3,40},? (?:ask|call|talk to|see) (?P<name>[\w.'-]+)"),
    (
        SURE,
        "take share handle run do own lead",
        rf"^{_NAMES} and [\w.'-]+ (?:take care of|are in charge of|handle|share|run|do|own|lead) \w",
    ),
    (
        SURE,
        "is",
        (
            rf"^{_NAMES} is (?:the|an?|our) (?:\w+ )?(?:{_PARTS}|machine|script|program|device|vehicle) (?:that"
            rf"|which|for)\b"
        ),
    ),
    (SURE, "call", rf"^{_NAMES} is what we call \w"),
    (
        SURE,
        "with hired",
        (
            rf"^(?:i|we)(?:'m|'re| am| are)? (?:working with|work with|hired) (?:an?|the|our) (?:[\w-]+ )?{ROLES},? "
            r"(?:called |named )?(?P<name>[\w.'-]+)"
        ),
    ),
    (SURE, "called named", rf"^(?:the|our|my) (?:[\w-]+ ){{0,3}}?(?:{ROLES}|{_PARTS}) is (?:called|named) \w"),
    (
        SURE,
        "from of at",
        (
            r"^(?P<name>[\w.'-]+) (?:from|at|of) (?:the|our) [\w ]{3,30}? (?:has|keeps|runs|does|knows|owns) (?:the"
            r"|our|all)\b"
        ),
    ),
)
_ASKED = r"(?:\w+ )?(?:questions?|typos?|errors?|problems?|issues?|bugs?|things?|ideas?|options?|minutes?|favou?rs?)\b"
_STATES = (
    "fire danger trouble doubt progress question charge touch love hand time last first least all it that this here"
)
_UNITS = (
    "errors warnings minutes seconds hours days weeks months years times failures tests bugs issues questions things "
    "options"
)
FACTS: tuple[Wording, ...] = (
    (
        SURE,
        (
            "runs listens lives resides hosted written built located deployed stored supports contains "
            "consists costs uses weighs serves"
        ),
        (
            r"^(?:the|our|this|production|staging|development) ?(?:[\w'./-]+ ){0,5}?(?:runs? (?:on|at|in"
            r"|under)|listens? (?:on|to)|lives? (?:in|at|on|under)|resides? in"
            r"|(?:is|are) (?:currently )?(?:hosted|written|built|located|deployed|stored|based"
            r"|implemented)(?= (?:on|in|at|with|by|under)\b)|supports?|contains?|consists? of|costs?|weighs?"
            r"|serves?|uses) \S"
        ),
    ),
    (
        SURE,
        "has have takes needs lasts holds",
        (
            rf"^(?:the|our|this|each|every|a|production|staging) (?:[\w'./-]+ ){{1,5}}?(?:has|have|takes?"
            rf"|needs?|lasts?|holds?) {_MEASURED}"
        ),
    ),
    (
        SURE,
        "have got",
        rf"{WE}(?:'ve| have)(?: got)? (?!{_ASKED}|to\b|been\b|[a-z]+(?:ed|pt|en)\b(?<!seven)(?<!ten)){_MEASURED}\w",
    ),
    (
        SURE,
        "use using run host deploy store serve support",
        (
            r"^(?:currently,? |today,? )?we(?:'re| are)? (?:currently |already |all |now |mostly )*(?:use|using|host"
            r"|deploy|store|serve|support|run on) (?!(?:it|that|this|them|to)\b)\w"
        ),
    ),
    (
        SURE,
        "there",
        (
            rf"^(?:currently |right now )?there (?:are|is) (?!{_ASKED}){_MEASURED}(?:about |roughly |around "
            rf"|over |only "
            rf"|exactly |some )?(?:\d|one|two|three|four|five|six|seven|eight|nine|ten|twelve)"
        ),
    ),
    (
        SURE,
        "deadline budget launch date release port version address url kickoff",
        (
            r"^(?:(?:the|our|my|project|current) )*(?:[\w-]+ ){0,2}?(?:deadline|budget|launch|release|port"
            r"|version|address|url|kick-?off|date)(?: (?:of|for) [\w' ]{1,30}?)? (?:is|are|will be)(?: on| at"
            r"| set to)? (?=\S*\d|[^,]{0,20}\d|[\w.-]+\.[a-z]{2,})"
        ),
    ),
    (
        SURE,
        "every each",
        (
            r"^(?:the|our|staging|production) [^,]{3,60} (?:every|each) (?:night|day|week|month|hour|morning"
            r"|evening|(?:mon|tues|wednes|thurs|fri|satur|sun)day|year)\b"
        ),
    ),
    (SURE, "our", r"^our (?:[\w-]+ ){1,3}?(?:are) (?:mostly|mainly|all) \w"),
    (
        SURE,
        "on in at under behind next between near above below inside outside",
        (
            rf"^(?:the|our|my) (?:[\w'/-]+ ){{1,5}}?(?:is|are|sits?|lies?|stands?|hangs?|comes? in)(?: still| "
            rf"now| currently)? "
            rf"(?:on|in|at|under|behind|next to|between|near|above|below|inside|outside) (?!{any_of(_STATES)}\b)\w"
        ),
    ),
    (
        SURE,
        "#",
        (
            r"^(?:(?:the|our|my|this) )?(?!(?:problem|issue|error|bug|question|answer|result|difference|i|we|you"
            r"|your|he|she|they|it|this|that|there|if|when|what|who|how|\w+'(?:m|re|ve|ll|d)) )"
            r"(?:[\w'/-]+ ){1,5}?(?:is|are|holds?|has|have|seats?|fits?|gets?|costs?|opens?|closes?|starts?"
            r"|lasts|takes?"
            r"|ends?|weighs?|measures?|handles?|comes? to|comes? with) (?!(?:been|had|failed|broken|getting)\b)[^,;?]*?"
            r"(?:\d|\b(?:three|four|five|six|seven|eight|nine|ten|twelve|twenty)\b(?= ?\w))"
        ),
    ),
    (
        SURE,
        "runs run lasts last takes take",
        (
            rf"^(?:(?:the|our|all) )?[\w'-]+(?: [\w'-]+){{0,3}} (?:runs?|lasts?|takes?) (?:for |about |around "
            rf")?{AMOUNT}[\w-]* "
            r"(?:minutes?|hours?|days?|weeks?|months?|years?)\b"
        ),
    ),
    (
        SURE,
        "we're on",
        (
            r"^we(?:'re| are)(?: now| still| already| all)? on (?!(?:it|track|the same|time|schedule|holiday|board"
            r"|fire|our|to|a)\b)\w"
        ),
    ),
    (
        SURE,
        "was were moved written rewritten built",
        (
            rf"^{THING}(?:(?:is|was|were|are|has been|have been) (?:re)?(?:written|built|moved|converted|ported"
            rf"|implemented|renamed) "
            r"(?:in|on|to|into|with|from)|(?:has |have )?moved to) \w"
        ),
    ),
    (
        SURE,
        "most half",
        (
            r"^(?:most|half|all|two thirds|a third|a quarter)(?: of)? (?:our|the|my) [\w' -]+ (?:are|is|come|use"
            r"|live|have|pay)\b"
        ),
    ),
    (
        SURE,
        "#",
        (
            rf"^\d[\d.,]* (?:(?!{any_of(_UNITS)}\b)[a-z-]+s|people|children|staff) \w+ \w(?! (?:ago|left|later|max"
            rf"|tops|please|minutes|errors?)\b)"
            r"(?!.*\b(?:failed|failing|errors?|broken|ago|left)\b)"
        ),
    ),
    (
        SURE,
        (
            "belongs belong comes come opens open closes close starts start speaks speak lives live pays pay accepts "
            "includes faces"
        ),
        (
            r"^(?:(?:the|our|my|half of the|half of our) (?!other\b|next\b)(?:[\w'/-]+ ){1,4}?(?:belongs? to"
            r"|comes? from|opens? at"
            r"|closes? at|starts? at|speaks?|lives? (?:in|at|on)|pays?|accepts?|includes?|faces?)) \w"
        ),
    ),
    (
        SURE,
        "we",
        (
            rf"^we (?:currently |now )?(?:sell|serve|get|make|ship|print|bake|process|produce|publish|receive|handle"
            rf"|employ|teach) "
            rf"(?:about |around |roughly |some |over |almost )?{AMOUNT}"
        ),
    ),
    (
        SURE,
        "there there's",
        (
            r"^there(?:'s| is| are)(?: already| still)? (?:an?|some|two|three) (?!(?:\w+ )?(?:bugs?|typos?"
            r"|errors?|problems?|mistakes?"
            r"|issues?|rumou?rs?|chance|reasons?|way|lot|difference|questions?|bit|thing|things|few)\b)[\w-]+(?: "
            r"[\w-]+)? "
            r"(?:behind|in|on|under|next to|at|between|near|above|below|outside|inside) (?:the|our|my)\b"
        ),
    ),
    (SURE, "ran lasted took", rf"^(?:the|our|my) (?:[\w'-]+ ){{1,4}}?(?:ran|lasted|took) (?:for )?(?:about )?{AMOUNT}"),
    (SURE, "#", r"^\d[\d.,]* [a-z]{3,}s?, \d[\d.,]* ?[a-z²³%]+"),
    (
        SURE,
        "ends end starts start begins begin opens open",
        rf"^(?:the|our|my) (?:[\w'-]+ ){{1,4}}?(?:ends?|starts?|begins?|opens?|closes?) (?:on |in |at )?{DATE}",
    ),
)
