"""A message as statements: clauses with their subject, without what leads into them, and how far each is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from models.facts.asides import supposed_from
from models.text.words import word_set

MAX_STATEMENTS = 64
MAX_STATEMENT_CHARS = 400
HEDGED = 0.4
"""Factor on the confidence of what is only thought to be so."""


class Statement(Struct, frozen=True, gc=False):
    """A clause in canonical form: it begins with "I", "I'm", "my", a verb in the imperative, or what it does begin with."""

    text: str
    weight: float = 1.0
    """How far it is meant: below 1 behind "I think", "maybe"."""
    corrects: bool = False
    """The user puts something right."""
    standing: bool = False
    """Asked for from now on."""
    lower: bool = False
    """The user writes without capitals, so that a name need not have one."""
    polite: bool = False
    """Behind "please", "can you"."""


_CANON = re.compile(
    r"\b(?:i am|im|i m|(?:i have|i've|ive) got(?= (?:an?|one|two|three|four|\d|some|no|my|asthma|diabetes|adhd|epilepsy|celiac|coeliac) (?!new\b))|i got|i've|ive|i do not|i dont|cannot|can not|cant|do not|dont|doesnt"
    r"|does not|is not|isnt|favorites?|favourites|any more|any longer|dnt|plz|pls|u|ur|gonna|wanna|gotta|kinda|btw|bc|cuz|prefered"
    r"|i will|my name's|name's|vegeterian|vegitarian|alergic|allergc|i would|id|i is|didnt|did not|wont|will not|lifes"
    r"|kind of|sort of|a bit|a little|basically|really|actually really|absolutely|definitely|totally|truly"
    r"|honestly|literally|personally|obviously|simply|quite|genuinely|tbh|ngl|very much)\b",
    re.IGNORECASE,
)
_CANON_FORMS = {
    "i am": "I'm", "im": "I'm", "i m": "I'm", "i have got": "I have", "i've got": "I have", "ive got": "I have",
    "i got": "I got", "i've": "I've", "ive": "I've", "i do not": "I don't", "i dont": "I don't", "cannot": "can't",
    "can not": "can't", "cant": "can't", "do not": "don't", "dont": "don't", "doesnt": "doesn't",
    "does not": "doesn't", "is not": "isn't", "isnt": "isn't", "favorite": "favourite", "favorites": "favourite",
    "favourites": "favourite", "any more": "anymore", "any longer": "anymore", "plz": "please", "pls": "please", "u": "you", "ur": "your",
    "dnt": "don't", "bc": "because", "cuz": "because", "prefered": "preferred", "i will": "I'll",
    "my name's": "my name is", "name's": "name is", "vegeterian": "vegetarian", "vegitarian": "vegetarian",
    "alergic": "allergic", "allergc": "allergic", "i would": "I'd", "didnt": "didn't", "did not": "didn't",
    "wont": "won't", "will not": "won't", "btw": "by the way", "id": "id", "i is": "i is", "lifes": "lifes",
    "gonna": "going to", "wanna": "want to", "gotta": "have to", "kinda": "kinda", "kind of": "kind of",
    "sort of": "sort of",
}  # fmt: skip
"""What is not named here is a filler and goes."""

_SENTENCE = re.compile(r"[^\n]*?(?:[.!?\u2026]+(?=[\s\")]|$)|[\n;]|$)")
_STARTS = (
    r"(?:i|i'm|i've|i'd|i'll|my|our|her|his|their|we|we're|we've|he|she|they|it|it's|ideas|thoughts|suggestions|tips|recommendations|advice|email|phone|be|changed|you|your|this|that|that's|there|please|always|never"
    r"|don't|call|can|could|would|will|what|how|why|where|which|who|when|if|is|are|do|does|did|should|just|also|keep"
    r"|use|answer|reply|respond|forget|remember|let's|from now on|stop|no longer|any|name is|make|avoid|write|give"
    r"|because|since|so|no need|ignore|delete|as|whenever|every time|in future|going forward)\b"
)
_CLAUSE = re.compile(
    r"(?:\s*[,:()]+\s*|\s+-+\s+|\s*\.\.+\s*)(?:(?:and|but|so|also|plus|then|or|yet|because|since|although|though|while"
    rf"|as)\s+)*(?={_STARTS}|\w+(?: \w+)? here$)"
    rf"|\s+(?:and|but|so|plus|because|although|though|while|since|as)\s+(?={_STARTS})(?!(?:and|but) (?:that|this|it|when)\b)"
    r"|[()]\s*|\s+(?=(?:so|because|but) (?:i|i'm|my|please|don't|can)\b)|(?<=[a-z]),? (?=(?:i'm|my name is|i live|i work"
    r"|i prefer|i have|i don't|i can't) )",
    re.IGNORECASE,
)
_ELIDED = re.compile(
    r"(?:\s*,\s*(?:(?:and|but)\s+)?|\s+(?:and|but)\s+)(?:(?:also|mostly|usually|now|still|just)\s+)*(?=(?:live|work|prefer"
    r"|use|love|like|hate|dislike|enjoy|speak|have|was born|can't|don't|go by|study|avoid|code in|teach|grew up"
    r"|moved|identify|never|only|am|drink|eat|run|need|want|adore|play|follow|keep|got|adopted|started|switched|became"
    r"|turned|write|program|work)\s)",
    re.IGNORECASE,
)
_PIECE = re.compile(
    r"(?:\s*,\s*(?:(?:and|but)\s+)?|\s+(?:and|but)\s+)(?=(?:(?:also|now|currently|not|originally|a|an|i'm)\s+)*"
    r"(?:an? |from |based |living |born |married|single|divorced|engaged|widowed|allergic|vegan|vegetarian"
    r"|pescatarian|\d{1,3}\b|originally|working|lactose|diabetic|colou?r|deaf|blind|dyslexic|gluten|halal|kosher"
    r"|intolerant|not |into |on |in my |usually |only |using |coeliac|celiac|asthmatic|epileptic|autistic|self-employed"
    r"|retired|unemployed|mum |mom |dad |father |mother |currently |temporarily ))",
    re.IGNORECASE,
)
_OWNED = re.compile(
    r"(?:\s*,\s*(?:and\s+)?|\s+and\s+)(?=(?:an?|two|three|four|\d|no|type)\s+(?!son\b|daughter\b|boy\b|girl\b|half))",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:[\s\"'*.,:_-]+"
    r"|(?:(?:hi|hello|hey|hiya|howdy|yo|good (?:morning|evening|afternoon))(?: there| everyone| all| again| claude| bot)?"
    r"|ok|okay|so|well|oh|ah|hm+|um+|right|sure|great|thanks|thank you|cool|nice|alright|by the way|fyi|and|but|then|plus|also"
    r"|anyway|for (?:the record|context|reference|your information|what it's worth|future reference|background)"
    r"|(?:(?:just )?so|in case|if) you(?:'re)? (?:know|didn't know|wondering|are wondering|need to know|care|must know|haven't"
    r" noticed|were wondering|want to know|ask)|(?:just|quick|small|side|one|another) (?:a )?(?:note|reminder|heads[- ]up|thing"
    r"|fact|question)(?: for (?:you|future reference))?|reminder|heads[- ]up|(?:please |just |also |can you |could you )*(?:note|remember"
    r"(?! to\b)|keep in mind|bear in mind|be aware|know|don't forget|take into account|save|store|make a note|take note|note down"
    r"|remind yourself|record|remember this|remember for (?:next time|later|the future))(?: (?:that|for me|this|for later|for next time|for the future))*"
    r"|(?:i|you) (?:should|must|need to|have to|want to|wanted to|forgot to|might|may)(?: (?:also|just|probably))? (?:mention|say|add|tell you|let you know|know|note"
    r"|point out|remember(?! to)|clarify)(?: (?:that|here))*|(?:just|also) (?:wanted )?to (?:say|mention|clarify|be clear|let you know|introduce myself)(?: that)?|i'd like you to (?:know|remember)(?: that)?"
    r"|as (?:you know|i (?:said|mentioned|told you|already (?:said|mentioned)))|like i (?:said|mentioned)|i (?:already )?(?:said|told you|mentioned)(?: (?:before|already|earlier))?(?: that)?"
    r"|since|because|given(?: that)?|considering(?: that)?|seeing(?: as| that)|as(?! (?:an?|someone|somebody) )|being that"
    r"|(?:the )?(?:fact|thing|problem|truth|reason)(?: is)?(?: that)?|unfortunately|sadly|luckily|fortunately|apparently|of course|yes|yeah|yep|yup"
    r"|first(?: of all|ly)?|second(?:ly)?|third|finally|lastly|importantly|important|in general|generally|usually|typically"
    r"|normally|mostly|lol|haha|ps|p\.s|update|some (?:background|context)|background|context|a bit about me|about me|to introduce myself|one more thing|next"
    r"|in my case|at home|outside of work|when i'm not working|in my (?:free|spare) time|for me|as for me|me|now|though|too|to be (?:clear|honest|fair)"
    r"|thing to know|one thing(?: about me)?|also worth (?:noting|knowing)(?: that)?|worth (?:noting|mentioning)(?: that)?|it turns out(?: that)?|turns out(?: that)?"
    r"|good news|big news|news|i (?:just )?(?:found out|realised|realized|learned)(?: that)?|i'm (?:happy|pleased|afraid|sorry|glad) to (?:say|tell you|report)(?: that)?|big change)"
    r"(?=[\s,:!.-]|$)(?!['’])[\s,:!.-]*)",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"(?:no|nope|actually|correction|sorry|wait|oops|my mistake|my bad|wrong|not quite|that's (?:wrong|not right|incorrect)"
    r"|small correction|i meant|i mean|to correct (?:you|myself|that)|scratch that|i misspoke|let me correct that"
    r"|you (?:got|have) (?:it|that|my \w+) wrong)(?=[\s,:!.-]|$)[\s,:!.-]*",
    re.IGNORECASE,
)
_HEDGE_LEAD = re.compile(
    r"(?:i (?:think|guess|believe|suppose|feel like|assume|hope)(?: that)?|maybe|perhaps|probably|possibly|not sure but"
    r"|i'm not sure(?: but| if)?|might be|could be)(?=[\s,])[\s,]*",
    re.IGNORECASE,
)
_STANDING_LEAD = re.compile(
    r"(?:from (?:now|here|this point|today) on(?:wards?)?|going forward|in (?:the )?future(?: (?:chats|answers|replies"
    r"|conversations|responses))?|from here on(?: out)?|by default|as a (?:general )?rule|(?:general|standing|new|house"
    r"|one|ground) (?:rule|instruction|request)s?(?: for you)?|rule of thumb|for (?:all )?(?:future|all|every|any)[a-z ]{0,30}"
    r"|in (?:all|every|each|any)(?: of)?(?: your| our| my)? (?:answers?|repl(?:y|ies)|responses?|conversations?|chats?|code)"
    r"|every time|at all times|when(?:ever)? (?:you|i|we) [^,]{3,60}(?=,))(?=[\s,:-]|$)[\s,:-]*",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"(?:please|kindly|just|(?:can|could|would|will) you(?: please)?|would you mind|i(?:'d| would) (?:like|appreciate|love|prefer) (?:it if )?(?:for )?you (?:to )?"
    r"|i (?:need|want|ask|expect) you to|i'd prefer (?:it )?if you|you (?:should|must|can|need to|have to|could|may)(?= (?:always|never|not|only|just|call|stop|use|answer|keep|forget|drop|skip|avoid|reply|address|refer))"
    r"|make sure (?:that )?(?:you |to )?|be sure to|remember to|don't forget to|try to|feel free to|let's|it'd be (?:great|nice) if you(?: could)?|i'd be grateful if you|i'd rather you)(?=\s)[\s,]*",
    re.IGNORECASE,
)
_HEDGE = re.compile(r"\b(?:maybe|perhaps|probably|possibly|might|may be|not sure|could be|i think|i guess|kinda|kind of|sort of)\b", re.IGNORECASE)
_HEDGE_WORDS = word_set("maybe perhaps probably possibly might may sure could think guess kinda kind sort believe suppose")
_ADVERBS = re.compile(
    r"(i|i'm|i've|i'd|my|name)(?: (?:also|actually|just|still|mostly|mainly|usually|generally|typically|always|strongly|much"
    r"|do|now|recently|finally|already|primarily|normally|tend to|happen to|officially|proudly|both|then|too|even))+ (?=\w)",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"(?:what|how|why|where|which|who|when|whether|is|are|am|was|were|do|does|did|has|have|should|shall|may|isn't|aren't|don't you|didn't"
    r"|if|unless|in case|suppose|can i|could i|would i|will i|can my|can we|any idea|do you know|guess)\b",
    re.IGNORECASE,
)
_POLITE_QUESTION = re.compile(r"(?:hey |hi |ok |so |please |also |and )*(?:can|could|would|will) you\b|(?:do|would) you mind", re.IGNORECASE)
_AS = re.compile(
    r"as (?:(?P<role>an? (?!\w+ of (?:fact|result|rule|matter)|result\b|rule\b|matter\b|start\b|side\b|note\b|reminder\b|reference\b|kid\b|child\b|test\b|gift\b|joke\b|bonus\b|example\b)[\w -]{3,80})"
    r"|(?:someone|somebody|a person) (?:who|that)(?P<verb> ?\w+|'s) (?P<rest>.+))",
    re.IGNORECASE,
)
_FIRST_PERSON_FORMS = {"has": "have", "doesn't": "don't", "does": "do", "can't": "can't"}
_CHANGED = re.compile(
    r"(?:my|the) (?P<a>[\w' -]{2,30}?) (?:(?:has |have |just |recently )*changed|went (?:up|down)|is (?:wrong|outdated|out of date|different now)|isn't (?:right|correct)|used to be .+|was .+)"
    r"|(?:i(?:'ve)? )?(?:just |recently )?(?:changed|updated|got a new|switched) (?:my )?(?P<b>[\w' -]{2,30})$",
    re.IGNORECASE,
)
_NOW = re.compile(r"(?:it's|it is|that's|the new one is|it should be|now it's) (?:now |actually )?(?P<v>.+?)(?: now)?$", re.IGNORECASE)
_FOR_ONCE = re.compile(
    r"(?:for|in|on|just for) (?:this|that|the next|these|my next|one) |at the moment|right now|this (?:week|month|time|weekend|morning|evening|summer)"
    r"|today|tonight|tomorrow|yesterday|just this once|when i was|back (?:in|when|then)|years ago|as a (?:kid|child|teenager)|in (?:19|20)\d\d$|(?:last|next) (?:week|month|night|weekend)",
    re.IGNORECASE,
)
_CONDITION_OF_YOU = re.compile(r"(?:if|in case|when) (?:you|it|that|this|relevant|needed|possible|anyone)", re.IGNORECASE)


def statements_of(text: str, words: set[str]) -> Iterator[Statement]:
    """The statements of what a user says in the first person or asks for; questions and suppositions left out."""
    lower = text == text.lower()
    found = 0
    for sentence in _SENTENCE.findall(_CANON.sub(_canon, text)):
        for statement in _of_sentence(sentence.strip(), words, lower):
            yield statement
            found += 1
            if found == MAX_STATEMENTS:
                return


def _canon(match: re.Match[str]) -> str:
    return _CANON_FORMS.get(match[0].lower(), "")


def _of_sentence(sentence: str, words: set[str], lower: bool) -> Iterator[Statement]:
    asked = sentence.endswith("?")
    sentence = " ".join(sentence[: supposed_from(sentence, words)].rstrip(".!?;\u2026 ").split())
    sentence, weight, corrects, standing, polite = _strip(sentence)
    clauses = [clause.strip() for clause in _CLAUSE.split(sentence) if clause and clause.strip()]
    named = ""
    passing = False
    for n, clause in enumerate(clauses):
        last = n == len(clauses) - 1
        form, clause_weight, clause_corrects, clause_standing, clause_polite = _strip(clause[:MAX_STATEMENT_CHARS])
        weight = clause_weight if n else min(weight, clause_weight)
        standing, corrects, polite = standing or clause_standing, corrects or clause_corrects, polite or clause_polite
        if not form:
            continue
        if form[:3].lower() in {"as ", "who"} and (role := _AS.match(form)):
            form = _as_said(role)
        if changed := _CHANGED.match(form):
            named = changed["a"] or changed["b"]
        elif named and (now := _NOW.match(form)):
            form, corrects, named = f"my {named} is {now['v']}", True, ""
        if _ASKING.match(form):
            if _CONDITION_OF_YOU.match(form) or last:
                continue
            if asked or form[:2].lower() == "if" or form[:6].lower() == "unless":
                return
            continue
        if _FOR_ONCE.match(form) and not last:
            passing = True
        if passing or (asked and last and not (clause_polite or polite or _POLITE_QUESTION.match(clause))):
            continue
        if not _HEDGE_WORDS.isdisjoint(words) and _HEDGE.search(form):
            clause_weight = HEDGED
        for piece in _pieces(form):
            yield Statement(piece, min(weight, clause_weight), corrects, standing, lower, polite)


def _as_said(role: re.Match[str]) -> str:
    """"As a vegan" and "as someone who lives in Porto" in the first person."""
    if role["role"]:
        return f"I'm {role['role']}"
    verb = role["verb"].lower()
    if verb in {"is", "'s"}:
        return f"I'm {role['rest']}"
    return f"I {_FIRST_PERSON_FORMS.get(verb, verb.removesuffix('s'))} {role['rest']}"


def _strip(clause: str) -> tuple[str, float, bool, bool, bool]:
    """The clause without its lead-ins, and what they say of it."""
    weight, corrects, standing, polite = 1.0, False, False, False
    for _ in range(8):
        before = clause
        if found := _CORRECTION.match(clause):
            clause, corrects = clause[found.end() :], True
        if found := _LEAD.match(clause):
            clause = clause[found.end() :]
        if found := _HEDGE_LEAD.match(clause):
            clause, weight = clause[found.end() :], HEDGED
        if found := _STANDING_LEAD.match(clause):
            clause, standing = clause[found.end() :], True
        if found := _POLITE.match(clause):
            clause, polite = clause[found.end() :], True
        if clause == before:
            break
    if " actually " in clause:
        corrects, clause = True, clause.replace(" actually ", " ")
    return _ADVERBS.sub(r"\1 ", clause, count=1), weight, corrects, standing, polite


def _pieces(clause: str) -> Iterator[str]:
    """Statements of a clause: "I'm a nurse and from Bergen" says two things of its subject."""
    subject = clause[:4].lower()
    if not subject.startswith(("i ", "i'm ", "i've", "i'd ", "i'll")):
        yield clause
        return
    first, *elided = _ELIDED.split(clause)
    for part in (first, *(f"I {rest}" for rest in elided)):
        if part[:5].lower() == "i am ":
            part = f"I'm {part[5:]}"
        if part[:4].lower() == "i'm ":
            head, *rest = _PIECE.split(part)
            yield head
            yield from (f"I'm {piece}" for piece in rest)
        elif part[:7].lower() == "i have ":
            head, *rest = _OWNED.split(part)
            yield head
            yield from (f"I have {piece}" for piece in rest)
        else:
            yield part
