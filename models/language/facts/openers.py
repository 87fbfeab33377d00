"""Openers of a statement, and how far they mean it: "remember that", "I think", "from now on", "please"."""

from __future__ import annotations

import re
from typing import NamedTuple

from models.text.words import word_set

HEDGED = 0.4
"""Factor on the confidence of what is only thought to be so."""
_MAX_OPENERS = 8


class Led(NamedTuple):
    """What is left of a clause, and what led into it."""

    form: str
    weight: float = 1.0
    corrects: bool = False
    standing: bool = False
    polite: bool = False
    condition: str = ""


_CONDITION = re.compile(r"when|if (?!in doubt)|unless|(?:every|each|any) ?time (?:i|you|we)", re.IGNORECASE)
_IMPERATIVES = {
    form: verb
    for verb, forms in {
        "use": "used using",
        "keep": "kept keeping",
        "write": "wrote writing",
        "give": "gave giving",
        "answer": "answered answering",
        "stop": "stopped",
        "avoid": "avoided avoiding",
        "call": "called calling",
        "speak": "spoke speaking",
        "be": "were was being",
        "don't": "didn't not",
        "reply": "replied replying",
        "explain": "explained explaining",
        "include": "included including",
        "talk": "talked talking",
        "skip": "skipped skipping",
        "respond": "responding responded",
    }.items()
    for form in forms.split()
}
"""As they stand behind "I'd prefer if you" and "would you mind"."""
_LEAD = re.compile(
    r"(?:[\s\"'*.,:_-]+"
    r"|(?:(?:hi|hello|hey|hiya|howdy|yo|good (?:morning|evening|afternoon))(?: there| everyone|"
    r" all| again| claude| bot)?"
    r"|ok|okay|so|well|oh|ah|hm+|um+|right|sure|great|thanks|thank you|cool|nice|alright|by the"
    r" way|fyi|and|but|then|plus|also"
    r"|anyway|for (?:the record|context|reference|your information|what it's worth|future reference|background)"
    r"|(?:(?:just )?so|in case|if) you(?:'re)? (?:know|didn't know|wondering|are wondering|need to"
    r" know|care|must know|haven't"
    r" noticed|were wondering|want to know|ask)|(?:just|quick|small|side|one|another) (?:a"
    r" )?(?:note|reminder|heads[- ]up|thing"
    r"|fact|question)(?: for (?:you|future reference))?|reminder|heads[- ]up|(?:please |just |also"
    r" |can you |could you )*(?:note|remember"
    r"(?! to\b)|keep in mind|bear in mind|be aware|know|don't forget|take into account|save|store"
    r"|make a note|take note|note down"
    r"|remind yourself|record|remember this|remember for (?:next time|later|the future))(?:"
    r" (?:that|for me|this|for later|for next time|for the future))*"
    r"|(?:i|you) (?:should|must|need to|have to|want to|wanted to|forgot to|might|may)(?: (?:also"
    r"|just|probably))? (?:mention|say|add|tell you|let you know|know|note"
    r"|point out|remember(?! to)|clarify)(?: (?:that|here))*|(?:just|also) (?:wanted )?to (?:say"
    r"|mention|clarify|be clear|let you know|introduce myself)(?: that)?|i'd like you to (?:know"
    r"|remember)(?: that)?"
    r"|as (?:you know|i (?:said|mentioned|told you|already (?:said|mentioned)))|like i (?:said"
    r"|mentioned)|i (?:already )?(?:said|told you|mentioned)(?: (?:before|already|earlier))?(?:"
    r" that)?"
    r"|i(?:'d| would) say(?: that)?|since|because|given(?: that)?|considering(?: that)?|seeing(?: as| "
    r"that)|as(?! (?:an?"
    r"|someone|somebody) )|being that"
    r"|(?:the )?(?:fact|thing|problem|truth|reason)(?: is)?(?: that)?|unfortunately|sadly|luckily"
    r"|fortunately|apparently|of course|yes|yeah|yep|yup"
    r"|first(?: of all|ly)?|second(?:ly)?|third|finally|lastly|importantly|important|in general"
    r"|generally|usually|typically"
    r"|normally|mostly|lol|haha|ps|p\.s|update|some (?:background|context)|background|context|a"
    r" bit about me|about me|to introduce myself|one more thing|next"
    r"|in my case|at home|outside of work|when i'm not working|in my (?:free|spare) time|for me|as"
    r" for me|me|now|though|too|to be (?:clear|honest|fair)"
    r"|thing to know|one thing(?: about me)?|also worth (?:noting|knowing)(?: that)?|worth"
    r" (?:noting|mentioning)(?: that)?|it turns out(?: that)?|turns out(?: that)?"
    r"|good news|big news|news|i (?:just )?(?:found out|realised|realized|learned)(?: that)?|i'm"
    r" (?:happy|pleased|afraid|sorry|glad) to (?:say|tell you|report)(?: that)?|big change)"
    r"(?=[\s,:!.-]|$)(?!')[\s,:!.-]*)",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"(?:no(?=[,.!-]| (?:i|i'm|my|it|it's|that|that's|actually|sorry|wait)\b)|nope|actually"
    r"|correction|sorry|wait|oops|my mistake|my bad|wrong|not quite|that's (?:wrong|not right"
    r"|incorrect)"
    r"|small correction|i meant|i mean|to correct (?:you|myself|that)|scratch that|i misspoke|let"
    r" me correct that"
    r"|you (?:got|have) (?:it|that|my \w+) wrong)(?=[\s,:!.-]|$)[\s,:!.-]*",
    re.IGNORECASE,
)
_HEDGE_LEAD = re.compile(
    r"(?:i (?:think(?! in\b)|guess|believe|suppose|feel like|assume|hope)(?: that)?|maybe|perhaps|probably"
    r"|possibly|not sure but"
    r"|i'm not sure(?: but| if)?|might be|could be)(?=[\s,])[\s,]*",
    re.IGNORECASE,
)
_STANDING_LEAD = re.compile(
    r"(?:from (?:now|here|this point|today) on(?:wards?)?(?: out)?|hereafter|henceforth|(?:whatever|"
    r"no matter what|anything) (?:i|you) [^,]{2,30}(?=,)|going forward|in (?:the )?future(?:"
    r" (?:chats|answers|replies"
    r"|conversations|responses))?|from here on(?: out)?|by default|as a (?:general )?rule"
    r"|(?:general|standing|new|house"
    r"|one|ground) (?:rule|instruction|request)s?(?: for you)?|rule of thumb|as an? (?:standing|house|"
    r"ground|hard|strict) rule"
    r"|for (?:future|(?:all|any|every|each)(?: of)?(?: future| my| our| your| the)*) \w+(?: (?:that "
    r")?(?:you|i|we) \w+(?: (?:for )?me)?)?"
    r"|(?:unless|until) (?:i (?:say|ask|tell you|specify|state|request|mention)|told|asked|stated|"
    r"specified)(?: otherwise| differently| for it| to stop)?"
    r"|until further notice|(?:every|each|any) ?time (?:you|i|we) [^,]{3,60}(?=,)"
    r"|if i (?:ask|write|say|send|paste|share|switch|speak|type|give you|post|use|make|mention|get|seem|sound|forget"
    r"|request|upload|show)\b[^,]{0,60}(?=,)"
    r"|if you(?:'re| are)? (?:ever )?(?:unsure|not sure|uncertain|in doubt|don't know|can't|have doubts|make|suggest"
    r"|quote|recommend|mention|give me|show me|write)\b[^,]{0,60}(?=,)"
    r"|if (?:something|anything|a (?:question|request|task))(?:'s| is| seems| looks)\b[^,]{0,60}(?=,)|"
    r"(?:if|when) in doubt(?=,)"
    r"|in (?:all|every|each|any)(?: of)?(?: your| our| my)? (?:answers?|repl(?:y|ies)|responses?"
    r"|conversations?|chats?|code)"
    r"|every time|at all times|when(?:ever)? (?:you|i|we) (?!(?:was|were|got|had|did|went|saw"
    r"|first|moved|\w+ed)\b)[^,]{3,60}(?=,))(?=[\s,:-]|$)[\s,:-]*",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"(?:(?:would|do) you mind|please|kindly|just|(?:can|could|would|will) you(?: please)?|i(?:'d|"
    r" would) (?:like|appreciate|love|prefer) (?:it if )?(?:for )?you(?: to)?"
    r"|i (?:want|need)(?= (?:every|all|your|each) (?:\w+ )?(?:answers?|repl(?:y|ies)|responses?"
    r"|messages?|summar\w+)\b)|i (?:need|want|ask|expect) you to|i'd prefer (?:it )?if you|you"
    r" (?:can|could|may)(?= (?:just call|call|write|answer|reply|speak|talk|stop|forget|drop|skip|"
    r"ignore|disregard|delete|remove))|you (?:should|must|need to"
    r"|have to)(?= (?:always|never|not|only|just|call|stop|use|answer|keep|forget|drop"
    r"|skip|avoid|reply|address|refer))"
    r"|make sure(?: that)?(?: you| to)?|be sure to|remember to|don't forget to|try to|feel free to"
    r"|let's|it'd be (?:great|nice) if you(?: could)?|i'd be grateful if you|i'd rather"
    r" you)(?=\s)[\s,]*",
    re.IGNORECASE,
)
_ADVERBS = re.compile(
    r"(i|i'm|i've|i'd|my|name|we|we've|we're)(?: (?:also|actually|just|still|mostly|mainly|usually"
    r"|generally|typically|always|strongly|much"
    r"|do|now|recently|finally|already|primarily|normally|tend to|happen to|officially|proudly"
    r"|both|then|too|even))+ (?=\w)",
    re.IGNORECASE,
)
_FOR_YEARS = re.compile(r"i've been (work|liv)ing(?= (?:as|at|for|in|near|outside)\b)", re.IGNORECASE)
_FOR_YEARS_FORMS = {"work": "I work", "liv": "I live"}
_SUBJECTS = word_set("i my we he she they it the a an this his her their there it's he's she's they're we're")
_LEADING = word_set(
    "think guess believe suppose feel assume hope should must need have want wanted forgot might may "
    "say already said told "
    "mentioned just found realised realized learned meant mean misspoke would ask expect appreciate only "
    "thing fact problem "
    "truth reason bad mistake case turns general standing new house ground small few first second third other"
)
"""Second words of what leads into a clause though it begins as a statement does."""


def lead_off(clause: str) -> Led:
    """The clause without its openers, and what they say of it."""
    led = Led(clause)
    for _ in range(_MAX_OPENERS):
        first, _, rest = led.form.partition(" ")
        if first.lower() in _SUBJECTS and rest.partition(" ")[0].lower() not in _LEADING:
            break  # Most clauses: nothing can lead into them.
        before = led.form
        led = _without_opener(led)
        if led.form == before:
            break
    form = led.form
    if " actually " in form:
        led, form = led._replace(corrects=True), form.replace(" actually ", " ")
    if found := _FOR_YEARS.match(form):
        form = _FOR_YEARS_FORMS[found[1].lower()] + form[found.end() :]
    if found := _ADVERBS.match(form):
        form = f"{found[1]} {form[found.end() :]}"
    return led._replace(form=form)


def _without_opener(led: Led) -> Led:
    form = led.form
    if found := _CORRECTION.match(form):
        return led._replace(form=form[found.end() :], corrects=True)
    if found := _LEAD.match(form):
        return led._replace(form=form[found.end() :])
    if found := _HEDGE_LEAD.match(form):
        return led._replace(form=form[found.end() :], weight=HEDGED)
    if found := _STANDING_LEAD.match(form):
        condition = found[0].strip(" ,:") if _CONDITION.match(form) else led.condition
        return led._replace(form=form[found.end() :], standing=True, condition=condition)
    if found := _POLITE.match(form):
        verb, _, rest = form[found.end() :].partition(" ")
        return led._replace(form=f"{_IMPERATIVES.get(verb.lower(), verb)} {rest}", polite=True)
    return led
