"""The patterns behind a turn's features, one alternative per line; a blank stands for any white space.

Each is run only on texts that hold one of its triggers. Positives and near misses of every pattern are listed in
`tests/unit/test_text_features.py`: add there first.
"""

from __future__ import annotations

import re

from models.text.words import word_set


def _one_of(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives).replace(" ", r"\s+"))


_RULES = (
    r"(?:instructions?|rules|guidelines|prompts?|training|polic(?:y|ies)|restrictions?|directions|constraints|filters?"
    r"|programming|safeguards?|safety|limits|limitations|context|ethics)"
)
_LIMITS = (
    r"(?:limits|limitations|rules|restrictions|guidelines|guardrails|safeguards|filters?|system prompt|boundaries"
    r"|policies|safety \w+)"
)
_BARRED = r"(?:allowed|permitted|forbidden|programmed|censored|restricted|filtered|monitored)"
_ANSWER = r"(?:help|tell|answer|say|give|do|discuss|talk|write|provide|share|explain)"
_AUXILIARY = r"(?:do|does|did|is|are|was|were|can|could|should|would|will|to|much|many)"
_SENTENCE = (
    r"(?:^|[.!?:;\n\"]\s*)"
    r"(?:(?:please|now|just|ok|okay|then|and|so|but|first|next|also|well|go ahead and)[,\s]+)*"
)
_DROP = r"(?<!don't\s)(?<!not\s)(?<!never\s)\b(?:ignore|disregard|forget|override|overrule|drop|skip)"

QUESTION_MARK = _one_of(r"\?(?=[\s\"')?!]|$)")
"""At a word's end: not the one inside an address."""
QUESTION_OPENING = _one_of(
    rf"\s*(?:how|what|why|when|where|who|which)(?:'s|'re| (?:{_AUXILIARY}|kind|else))\b",
    r"\s*(?:can|could|would|will|do|does|did|is|are|should) (?:you|i|we|they|there|it|this|that|he|she)\b",
)
WH_QUESTION = _one_of(
    rf"\b(?:how|what|which|where|who|when)(?:'s|'re)? (?:\w+ ){{0,2}}?(?:{_AUXILIARY}|long|kind|makes?|works?)\b"
)
IMPERATIVE = _one_of(
    _SENTENCE + r"(?:(?:tell|show|give|teach|send|get|bring|read) "
    r"(?:me|us|him|her|them|it|the|a|an|your|my|all|every|each|some|more|how|what)\b"
    r"|(?:explain|describe|write|list|generate|provide|create|translate|summari[sz]e|rewrite|draft|compose|find|make"
    r"|build|draw|compare|outline|name|calculate|design|help|continue|add|remove|change|fix|convert|repeat|answer|stop"
    r"|use) (?!(?:is|are|was|were|has|sense|sure|believe|and|or|wanted|said|that hard)\b)\w"
    r"|(?:do|keep|try) (?:it|this|that|not|going|again)\b)"
)
HYPOTHETICAL = _one_of(
    r"\bwhat if (?:you|some(?:one|body)|there (?:were|was) no|nobody|no one)\b",
    r"\bwhat if an? (?:\w+ )?(?:person|character|villain|model|ai|attacker|hacker|thief|spy)\b",
    r"\bwhat if (?:i (?:told|said|asked|wanted|were)|we (?:pretend|imagine|said))\b",
    _SENTENCE + r"(?:let's |lets |can you |could you |to )?pretend "
    r"(?:that|to be|you|i|i'm|we|this|there|it|he|she|they)\b",
    _SENTENCE + r"(?:let's )?(?:imagine|suppose|assume) (?:that|you|you're|a|an|there|we|i|someone|this)\b",
    r"\bhypothetical(?:ly)?\b",
    r"\bfor the sake of argument\b",
    r"\blet's say (?:that|you|i|someone|there|a)\b",
    r"\brole-?\s?play(?:ing)? (?:as|a|an|with|that|where|this)\b",
    r"\bact (?:as (?:if|though|my|an?)|like you(?:'re| are))\b",
    r"\bif you (?:were|had) (?:not?|an?|able|allowed|free)\b",
)
META_INSTRUCTION = _one_of(
    _DROP + r" (?:about )?(?:(?:all|any|everything|every|of|the|your|these|those|my) )*"
    r"(?:(?:previous|prior|above|earlier|preceding|original|initial|system|safety|content|ethical|moral|other|own|usual"
    rf"|old) )+{_RULES}\b",
    _DROP + rf" (?:about )?(?:all |any )?(?:of )?your (?:\w+ )?{_RULES}\b"
    r"(?! (?:shoes|wheels|gear|bag|plan|session|schedule|clothes))",
    _DROP + r" (?:everything|all|anything|what|whatever) (?:that )?(?:(?:you|i|we|they) )?"
    r"(?:(?:were|was|are|have|been|had|has|came|is) )*(?:said|told|taught|wrote|written|learned|before|above|know)\b",
    r"\bbypass (?:all |any )?(?:of )?your (?:\w+ )?" + _RULES + r"\b",
    r"\byou (?:are|were) now (?:an? )?(?:in )?"
    r"(?:dan|unrestricted|unfiltered|uncensored|jailbroken|free of|developer mode)\b",
    r"\bfrom now on,? you (?:are|will|must|have|can|do)\b",
    r"\bdo anything now\b",
    r"\bjail\s?break(?:ed|ing)?\b",
    r"\bwithout (?:any|your) (?:restrictions?|filters?|censorship|limits|limitations|safeguards|guidelines"
    r"|disclaimers?|warnings?)\b",
    rf"\bstop (?:following|obeying) (?:your|the|any) (?:\w+ )?{_RULES}\b",
    r"\b(?:reveal|print|repeat|show|leak|output) (?:me )?(?:your|the) (?:\w+ )?(?:system )?prompt\b",
    r"\bdeveloper mode\b",
)
PROBING = _one_of(
    rf"\byour (?:(?:own|content|safety|moderation|usage|exact|actual|internal) )*{_LIMITS}\b",
    r"\bwhat (?:things |topics |subjects )?(?:can't|cannot|won't|aren't) you "
    rf"(?:allowed|permitted|{_ANSWER})\b",
    rf"\bwhat (?:things |topics |subjects )?(?:are|can|would|will) you (?:not|never|refuse|{_BARRED})\b",
    rf"\b(?:are|were) you (?:really |even |not |actually )?{_BARRED}\b",
    rf"\bwhy (?:can't|won't|cannot) you (?:just |simply )?{_ANSWER}\b",
    rf"\b(?:is|isn't|would) (?:it|this|that) (?:be )?(?:against|violate|break) (?:your|the|any) (?:\w+ )?{_RULES}\b",
    rf"\b(?:do|don't) you have (?:any )?(?:\w+ )?{_LIMITS}\b",
    r"\bwhat (?:happens|would happen) if (?:you|i) (?:break|broke|ask|asked|refuse|refused|ignore|cross)\b",
    r"\bwho (?:decides|decided|controls|checks|reads) what you\b",
    r"\bhow far (?:can|would|will) you go\b",
)
REFUSAL = _one_of(
    r"\bi(?:'m| am) (?:sorry,? but i|unable to|not able to|not going to|not comfortable)\b",
    r"\bi (?:can't|cannot|can not|won't|will not|must not) (?:\w+ )?"
    rf"(?:{_ANSWER}|assist|support|comply|fulfill?|create)\b",
    r"\bi (?:must|have to) (?:decline|refuse)\b",
    r"\bagainst my (?:\w+ )?(?:guidelines|policy|policies|rules)\b",
)

IMPERATIVE_TRIGGERS = word_set(
    "tell show give teach send get bring read explain describe write list generate provide create translate "
    "summarise summarize rewrite draft compose find make build draw compare outline name calculate design help "
    "continue add remove change fix convert repeat answer stop use do keep try"
)
HYPOTHETICAL_TRIGGERS = word_set(
    "pretend imagine suppose assume hypothetical hypothetically argument let's roleplay role act roleplaying"
)
META_TRIGGERS = word_set(
    "ignore disregard forget override overrule bypass drop skip now without stop reveal print repeat show leak "
    "output jailbreak jailbreaked jailbreaking jail developer"
)
PROBING_TRIGGERS = word_set(
    "limits limitations rules restrictions guidelines guardrails safeguards filter filters prompt boundaries "
    "policies policy safety allowed permitted forbidden refuse refused can't won't cannot aren't not never "
    "programmed censored restricted filtered monitored against violate break broke ask asked cross decides "
    "decided controls checks reads far"
)
REFUSAL_TRIGGERS = ("n't", "not", "sorry", "unable", "decline", "refuse", "against my")
