"""Ways of saying what one can spend, when one can, and what one cannot see, hear or climb."""

from __future__ import annotations

_TIMES = (
    r"(?P<v>(?:(?:early|late|weekday|sunday|saturday|monday|tuesday|wednesday|thursday|friday) )?"
    r"(?:mornings?|afternoons?|evenings?|nights?|weekends?|weekdays?|weeknights?|(?:mon|tues|wednes|"
    r"thurs|fri|satur|sun)days?"
    r"|lunch ?times?|after \d\S*(?: ?[ap]m)?|before \d\S*(?: ?[ap]m)?)(?:(?:,? and |,? or |, )[\w ]{3,24}?)?)"
)
_TIME_WORDS = (
    "morning/mornings/afternoon/afternoons/evening/evenings/night/nights/weekend/weekends/weekday/weekdays/weeknights"
    "/mondays/tuesdays/wednesdays/thursdays/fridays/saturdays/sundays/monday/tuesday/wednesday/"
    "thursday/friday/saturday/sunday"
    "/lunchtime/lunchtimes/before/after"
)
_MONEY = (
    r"(?:(?:about|around|roughly|only|just|maybe|at most|up to|under) )?(?P<v>[$€£¥]\s?\d[\d.,]*k?|"
    r"\d[\d.,]*k?\s?(?:euros?|eur|dollars?|usd|pounds?|gbp|quid|bucks|kroner|nok|sek|francs?|chf|"
    r"[$€£]|k\b)|\d[\d.,]*k\b)"
)

WAYS: tuple[tuple[str, str, str], ...] = (
    # Money
    (
        "limit/max/maximum/ceiling/cap/range/spend",
        (
            r"my (?:absolute |hard |upper )?(?:max(?:imum)?|limit|ceiling|price range|cap|spending limit|"
            r"price limit|upper limit)(?: is|:|'s)(?: at)? (?:about |around )?(?P<v>\D{0,3}\d.+)"
        ),
        r"my budget is \g<v>",
    ),
    (
        "spend/left/aside/saved/total/budgeted/euros/dollars/pounds/bucks/quid/kroner/eur/usd/gbp",
        (
            rf"(?:i|we)(?:'ve)? (?:only )?(?:have|got)? ?(?:only )?{_MONEY}(?P<r>(?: or so)?(?: (?:a|per|each) "
            rf"\w+)?) (?:to (?:spend|work with|play with|live on|get by)|for (?!a (?:dentist|ticket)).+|left "
            rf"for .+|set aside.*|saved.*|in total.*|budgeted.*)"
        ),
        r"my budget is \g<v>\g<r>",
    ),
    (
        "over/above/beyond/under/below/within/less",
        (
            rf"(?:nothing|not|can't go|cannot go|we can't go|i can't go|i don't want to (?:spend|pay|go)|i "
            rf"won't (?:pay|go|spend)|i'd rather not (?:spend|go|pay)|must (?:be|stay|cost)|has to (?:be|stay|"
            rf"cost)|needs to (?:be|stay)|i(?:'d like| want| need| have)? to (?:stay|keep it)|it (?:has|needs) "
            rf"to (?:be|stay|cost)) (?:that costs |costing |a cent )?(?:over|above|more than|beyond|under|"
            rf"below|within|less than) {_MONEY}(?P<r>(?: (?:a|per|each) \w+)?)"
        ),
        r"my budget is \g<v>\g<r>",
    ),
    (
        "aside/saved/budgeted/earmarked/allocated",
        rf"(?:i|we)(?:'ve)? (?:set aside|saved(?: up)?|put aside|budgeted|earmarked|allocated) {_MONEY}",
        r"my budget is \g<v>",
    ),
    ("total/overall/budget", rf"(?:total|overall|full|max(?:imum)?) budget(?: is|:)? {_MONEY}", r"my budget is \g<v>"),
    (
        "spend/afford/pay",
        (
            rf"(?:i|we)(?:'m)? (?:can|could|can only|can't|am able to|are able to|willing to|prepared to|want "
            rf"to) (?:only )?(?:spend|afford|pay)(?: up to| at most| no more than| about| around| maybe| more "
            rf"than| over)* {_MONEY}(?P<r>(?: (?:a|per|each) \w+)?)"
        ),
        r"my budget is \g<v>\g<r>",
    ),
    ("live/get", rf"(?:i|we) (?:live|get by) on {_MONEY}(?P<r>(?: (?:a|per) \w+)?)", r"my budget is \g<v>\g<r>"),
    # Time
    (
        _TIME_WORDS,
        (
            r"(?:i|we) (?:can|could)(?P<o> only| never)? (?:ever )?(?:do|make(?: it)?|manage|meet|talk|train|"
            r"come|join|work|take calls|call|study|exercise|practi[cs]e)(?: it)? (?P<v>(?:on |in |at |before |"
            r"after |between )?(?:the )?(?:early |late |weekday )?(?:(?:mon|tues|wednes|thurs|fri|satur|"
            r"sun)days?|mornings?|afternoons?|evenings?|nights?|week(?:end|day|night)s?|before|after|between|"
            r"from|\d).*)"
        ),
        r"I'm\g<o> available \g<v>",
    ),
    (
        _TIME_WORDS,
        (
            rf"{_TIMES} (?P<w>(?:are|is)(?: always| usually)? (?:out|no good|bad|impossible|best|better|good|"
            rf"ideal|no-go|off limits|free|taken|blocked)|(?:don't|doesn't|never|only|always|usually) works?|"
            rf"works?(?: best| better| well)?|suits? me(?: best)?)(?: for (?:me|us)\b.*|$)"
        ),
        r"my availability is \g<v> \g<w>",
    ),
    (_TIME_WORDS, rf"{_TIMES} only(?: please| for me)?$", r"my availability is \g<v> only"),
    (
        _TIME_WORDS,
        (
            r"i (?:have|get|always have) (?P<v>(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekends?|"
            r"weekdays?|mornings?|afternoons?)(?: and \w+)? off)"
        ),
        r"my availability is \g<v>",
    ),
    (
        "free/day/slot/off/time",
        (
            r"(?:my|the) only (?:free |spare |available )?(?:day|time|evening|morning|slot|window|days)s?(?: "
            r"off| free| i(?:'m| am) free| i have(?: off| free)?)?(?: in the week| of the week)? (?:is|are) "
            r"(?P<v>.+)"
        ),
        r"my availability is \g<v>",
    ),
    (
        "minutes/hour/hours",
        (
            r"(?:i|we) (?:only )?(?:have|get|can spare|can only spare|can spend)(?: only| about| maybe| at "
            r"most)* (?P<v>(?:\d+|an?|one|two|three|half an|twenty|thirty|ten|fifteen) (?:minutes|mins?|"
            r"hours?)(?: of .+?)? (?:a|per|each|every) (?:day|week|evening|morning|night|session|weekend))\b"
        ),
        r"my availability is \g<v> between",
    ),
    (
        "finish/off/leave/start",
        (
            r"i (?:finish|get off|start|leave|get home from|am home from) (?:work )(?:at|by|around|after) "
            r"(?P<v>\d\S*(?: ?[ap]m)?)"
        ),
        r"my availability is after \g<v>",
    ),
    (
        "reach/reachable/reached",
        (
            r"(?:i'm|you can|i can) (?:only )?(?:be )?reach(?:able|ed)?(?: me)?(?: only)? (?P<v>(?:on |in |at "
            r"|before |after |between )?(?:the )?(?:weekend|weekday|morning|afternoon|evening|(?:mon|tues|"
            r"wednes|thurs|fri|satur|sun)day|before|after|between).*)"
        ),
        r"my availability is \g<v>",
    ),
    # Senses and moving about
    (
        "red/green/colours/colors",
        (
            r"i (?:can't|cannot|struggle to|have trouble) (?:really )?(?:tell|see|distinguish|telling|"
            r"distinguishing)(?: the difference between)? (?:red (?:and|from) green|colou?rs apart|colou?rs).*"
        ),
        r"I'm colour blind",
    ),
    (
        "stairs/steps",
        r"i (?:can't|cannot|struggle to) (?:climb|use|manage|do|take|get up|handle) (?:stairs|steps)\b.*",
        r"I need step-free access",
    ),
)
"""Words of which one must be there, the clause, and what it says plainly."""
