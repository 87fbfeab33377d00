"""Proposals of an assistant that the user took up: "yes, let's do that" is a decision with the proposal's content."""

from __future__ import annotations

import re

from models.language.facts.attribution import plain
from models.language.statements.spoken import MAX_SENTENCE_CHARS, sentences_of

MAX_REPLY_CHARS = 160
"""A longer reply says more than that it agrees."""
_YES = re.compile(
    (
        r"(?:(?:yes|yeah|yep|yup|ok(?:ay)?|sure|agreed|(?:fine|ok|good|great) (?:by|with|for) (?:me|us)|great(?: "
        r"idea)?|perfect|good idea|excellent"
        r"|alright|fine|absolutely|deal|right"
        r"|sounds (?:good|great|right|fine)|that works(?: for (?:me|us))?|works for (?:me|us)|makes sense"
        r"|i agree|we agree|done deal"
        r"|please|thanks|thank you|go ahead|go for it|do it|do (?:exactly )?(?:that|so)|let's (?:do|go "
        r"with|use|take|try|lock) (?:exactly )?(?:it|that|this|so)(?: in)?"
        r"|we'll (?:do|go with|use|take) (?:it|that|this)|i'll (?:take|go with) (?:it|that)|(?:we|i) "
        r"(?:decided|agreed) (?:on|to do) (?:that|it)"
        r"|then|so|and|it is|with that|as you (?:say|suggest|suggested|propose|proposed))\b[\s,.!:-]*)+\Z"
    ),
    re.IGNORECASE,
)
_BARE = frozenset({"thanks", "thank you", "please", "right", "fine", "so", "then", "great", "perfect", "sure thanks"})
"""These alone agree to nothing."""
_VERBS = re.compile(
    (
        r"(?:use|using|go|choose|pick|switch|move|moving|migrate|build|write|host|deploy|keep|drop|add"
        r"|remove|split|store|cache|run|set|put|plan|cut|book|order|leave"
        r"|replace|adopt|implement|create|start|stop|make|take|try|separate|merge|rename|rewrite"
        r"|introduce|wait|postpone)\b"
    ),
    re.IGNORECASE,
)
_ADVICE = re.compile(
    (
        r"(?<!if )(?<!why )(?<![\w'])(?:i(?:'d| would)?(?: strongly| still| rather)? (?:recommend|suggest"
        r"|propose|advise|go with|choose|pick|use|opt for)"
        r"(?: (?:that )?(?:you|we)(?: should)?)?|my (?:recommendation|suggestion|proposal|advice) (?:is"
        r"|would be)(?: to)?"
        r"|i(?:'d| would)(?: then| rather)?(?= (?:put|plan|keep|move|set|drop|split|add|start|cut|book|make|take"
        r"|leave)\b)"
        r"|(?:we|you) should|let's|(?:shall|should) (?:we|i)|(?:do you )?want me to|how about(?: we)?|why "
        r"don't we) (?P<what>\S.*)"
    ),
    re.IGNORECASE,
)
_TALK = re.compile(
    (
        r"(?:explain|show|elaborate|continue|go on|help|tell|draft|write|look|check|list|walk|describe"
        r"|give|start|summari[sz]e|know"
        r"|discuss|see|wait|provide|proceed|review|say)\b"
    ),
    re.IGNORECASE,
)
_DOING = {
    "going": "go",
    "splitting": "split",
    "deploying": "deploy",
    "dropping": "drop",
    "running": "run",
    "putting": "put",
    "cutting": "cut",
}
_GERUND = re.compile(r"(?P<stem>[a-z]+?)ing\b(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_VERB_FOLLOWS = re.compile(
    r"(?:should|shall (?:we|i)|should (?:we|i)|let's|i'd|i would|i'd then|i'd rather|want me to|how about we|why "
    r"don't we|to) +\Z",
    re.IGNORECASE,
)
_DROPPED_E = ("us", "at", "ov", "as", "ar", "uc", "ag", "in", "iz")
"""Ends of stems that lost their last letter to the gerund."""
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s)[^.!?\n]*)*[.!?]*")


def agrees(reply: str) -> bool:
    """Whether a message says nothing but that it takes up what was proposed.

    >>> agrees("Yes, let's do that."), agrees("Yes, but is it fast?"), agrees("Thanks!")
    (True, False, False)
    """
    said = reply.strip()
    if not said or len(said) > MAX_REPLY_CHARS or "?" in said:
        return False
    return _YES.match(plain(said)) is not None and said.strip(" .,!").lower() not in _BARE


def proposal_in(message: str) -> str | None:
    """The one thing that a message proposes, as an order: "Use PostgreSQL for this use case". None if none, or several.

    >>> proposal_in("I recommend PostgreSQL for this use case. It is robust.")
    'Use PostgreSQL for this use case'
    >>> proposal_in("I would use Vue. You should also drop IE.") is None
    True
    """
    asked = [each.strip() for each in _SENTENCE.findall(plain(message)[-2_000:]) if each.rstrip().endswith("?")]
    found = {what for sentence in (*sentences_of(message), *asked[-1:]) if (what := _proposed(sentence))}
    return found.pop() if len(found) == 1 else None


def _proposed(sentence: str) -> str | None:
    match = _ADVICE.search(sentence) if len(sentence) <= MAX_SENTENCE_CHARS else None
    if match is None:
        return None
    what = re.split(r": |; |, (?:because|since|as|but|so|is|if) ", match["what"].strip(" .!?:"), maxsplit=1)[0].strip()
    what = re.sub(r"^(?:also|now|then|just|simply|to) ", "", what)
    if not what or _TALK.match(what):
        return None
    if _VERBS.match(what) is None or what.lower().startswith(("using ", "moving ")):
        gerund = _GERUND.match(what)
        if gerund is not None and gerund["rest"].startswith(" "):
            verb = _DOING.get(f"{gerund['stem']}ing".lower(), _stem(gerund["stem"].lower()))
            what = f"{verb}{gerund['rest']}"
        elif not _VERB_FOLLOWS.search(sentence, 0, match.start("what")):
            what = f"use {what}"
    return what[:1].upper() + what[1:]


def _stem(stem: str) -> str:
    """The verb of a gerund: `us` is "use", `migrat` "migrate"; others stand as they are."""
    return f"{stem}e" if stem.endswith(_DROPPED_E) else stem
