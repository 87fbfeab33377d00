"""Rules for standing orders: how the user wants to be answered from now on."""

from __future__ import annotations

import re
from collections.abc import Iterable

from models.facts import vocabulary
from models.facts.statements import Statement
from models.facts.values import INSTRUCTION, Finding, Rule, fact, rule, slug
from models.text.words import word_set

_STANDING = 0.9
_STYLE = 0.65
"""Of an order about answers as such, not said to hold from now on."""
_IMPORTANCE = 0.85
_MAX_RULE_WORDS = 24
_MARKS = re.compile(r"\b(?:always|never|every|each time|all (?:of )?(?:your|future|my)|from now on|by default|whenever|ever|going forward|in (?:the )?future|permanently|anymore|any longer|from here on)\b", re.IGNORECASE)
_STRIPPED = re.compile(r"(?:^|\s)(?:always|from now on|please|in (?:the )?future|going forward|by default|ever|every time|anymore|from here on(?: out)?|in all (?:your|of your|future) (?:answers|replies|responses)|at all times)(?=[\s,.]|$),?", re.IGNORECASE)
_ONE_OFF = re.compile(r"\b(?:this|these|that|it|the following|below|above|here|just once|for now|today|tomorrow|tonight|him|her|them|again)\b", re.IGNORECASE)
_LANGUAGE = re.compile(rf"\b(?:in|to|use|speak|only) (?:\w+ )?({'|'.join(sorted(vocabulary.NATURAL_LANGUAGES))})\b", re.IGNORECASE)
_ANSWERING = re.compile(r"(?:always |only |never |just |all )*(?:answer|reply|respond|speak|talk|write(?: back)?|communicate|chat|use|stick to|switch|give|your|explain)\b", re.IGNORECASE)
_NO = re.compile(r"(?:never|don't|no|avoid|skip|stop|without|drop|leave out|omit|refrain from|do without|not|quit|zero|cut)\b|.*\b(?:without|no|never|don't|not|free of)\b", re.IGNORECASE)
_ANSWERS = r"\b(?:answers?|repl(?:y|ies)|responses?|explanations?|messages|things|me|summaries|output)\b"
_CAP = re.compile(r"\b((?:under|below|at most|no more than|less than|max(?:imum)?(?: of)?|up to|within|in|to|limit\w* to|fewer than|maximum) (?:a |an )?(?:max(?:imum)? of )?(?:\d+|one|two|three|four|five|a couple of|a few) (?:words?|sentences?|lines?|paragraphs?|bullets?|bullet points|characters))\b", re.IGNORECASE)
_LENGTH = re.compile(rf"\b({'|'.join(sorted(vocabulary.LENGTHS, key=len, reverse=True))})\b|to the point|get to the point", re.IGNORECASE)
_TONE = re.compile(rf"\b({'|'.join(sorted(vocabulary.TONES, key=len, reverse=True))})\b", re.IGNORECASE)
_FORMAT = re.compile(rf"\b({'|'.join(vocabulary.FORMATS)})\b", re.IGNORECASE)
_UNIT = re.compile(rf"\b({'|'.join(sorted(vocabulary.UNITS, key=len, reverse=True))})\b(?: (?:units|system))?", re.IGNORECASE)
_EMOJI = re.compile(r"\bemoji(?:s|es)?\b|\bemoticons?\b|\bsmileys?\b", re.IGNORECASE)
_CITE = re.compile(r"\b(?:cite|citations?|sources?|references)\b", re.IGNORECASE)
_COMMENTS = re.compile(r"\b(?:comments?|docstrings?)\b.*\bcode\b|\bcode\b.*\bcomments?\b|\bcode comments?\b|\bcomment (?:the|your|my) code\b|\b(?:add|write|use|include|no|without|put|leave) (?:\w+ )?comments\b", re.IGNORECASE)
_DONE = re.compile(r"(?:always|never|ever|not) (?:\w+ed|was|been|had|got|did|has|have|am|knew|went|saw|heard|thought|mind)\b", re.IGNORECASE)
"""Said of oneself behind a subject that is left out: "and never used it"."""
_HABITS = re.compile(
    r"(?:stop|quit|avoid|don't|no need to|skip|no more|no|drop|you don't (?:have|need) to|refrain from|cut out|leave out) (?:\w+ ){0,3}?(?:apologi[sz]\w*|disclaimers?|jargon|slang|exclamation (?:marks|points)|filler|small talk"
    r"|flattery|compliment\w*|praise|praising|sugar-?coat\w*|hashtags|caveats|warnings|lectur\w+|preamble|intros?|introductions|pleasantries"
    r"|follow-up questions|puns|jokes|em[- ]dashes|spoilers?|swearing|swear words|repeat\w* (?:my question|yourself)|moraliz\w+|metaphors|acronyms|abbreviations|passive voice)\b",
    re.IGNORECASE,
)
_MINOR = word_set(
    "a an the to of in on at for with and or but by as is are be my your me you i it that this when whenever if "
    "please always then any all from so do before after unless without"
)
_VERBS = (
    "always/never/don't/stop/avoid/skip/no/use/keep/answer/reply/respond/speak/talk/write/be/make/limit/include/add/only/drop/omit"
    "/format/give/provide/explain/ask/start/begin/end/run/check/tell/put/show/cite/stick/treat/assume/suggest/prefix/refrain/respond/"
    "all/your/wrap/sign/remind/double-check/leave/spell/prioritise/prioritize/when/if/whenever/every/before/after/quote/number/list/return"
    "/convert/communicate/chat/switch/do/include/test/comment/follow/adopt/address/summarise/summarize/finish/state/mention/round/offer"
    "/recommend/mark/warn/point/say/stay/refer/consider/verify/prefer/review/save/set/sort/target/think/translate/i/commit/ensure/display/print/label/"
    "quit/zero/you/please/short/bullet/plain/code/british/american/metric/default/take"
)


def _order(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = " ".join(match[0].split()[:_MAX_RULE_WORDS]).strip(" .,!\"'")
    standing = statement.standing or bool(_MARKS.search(text))
    if text.lower().startswith(("never mind", "i ", "don't worry", "do you", "you can", "when i was", "no problem", "no worries", "you're", "no i", "always wanted", "always been", "all good", "no idea", "stop me", "don't know", "don't think", "if i")) and not statement.standing:
        return []
    if _DONE.match(text):
        return []
    known = _of_style(text, statement, standing=standing)
    if known is not None:
        return known
    if not standing:
        if _HABITS.match(text):
            return _open(text, statement, _STYLE)
        return []
    return _open(text, statement, _STANDING)


def _open(text: str, statement: Statement, confidence: float) -> list[Finding]:
    said = " ".join(_STRIPPED.sub(" ", text).split()).strip(" ,.")
    words = [word for word in slug(said).split("_") if word not in _MINOR and len(word) > 1]
    if len(said.split()) < 2 or not words:
        return []
    return list(fact(INSTRUCTION, "_".join(words[:5]), said, statement, confidence, _IMPORTANCE))


def _of_style(text: str, statement: Statement, *, standing: bool) -> list[Finding] | None:
    """A rule about answers whose key is known; None if it is about something else, empty if it is for once."""
    never = bool(_NO.match(text))
    general = standing or not _ONE_OFF.search(text)
    confidence = _STANDING if standing else _STYLE

    def found(key: str, value: str) -> list[Finding]:
        return list(fact(INSTRUCTION, key, value, statement, confidence, _IMPORTANCE)) if general else []

    if _EMOJI.search(text):
        return found("emojis", "never" if never else "always")
    if (language := _LANGUAGE.search(text)) and _ANSWERING.match(text) and not text.lower().startswith(("never", "don't", "stop")):
        return found("answer_language", language[1].capitalize())
    if _COMMENTS.search(text):
        return found("code_comments", "never" if never else "always")
    if _CITE.search(text) and (standing or re.match(r"(?:cite|include|give|add|provide|no|skip|don't)\b", text, re.IGNORECASE) and re.search(r"\b(?:sources|citations|references)$", text, re.IGNORECASE)):
        return found("citations", "never" if never else "always")
    if (unit := _UNIT.search(text)) and re.match(r"(?:always |only |please |never )?(?:use|give|stick|convert|show|express|measurements|all|your|metric|in|answer|write|keep|work|i want|temperatures)\b", text, re.IGNORECASE) and not never:
        return found("units", unit[0])
    if cap := _CAP.search(text):
        return found("response_length", cap[1]) if standing or re.search(_ANSWERS, text, re.IGNORECASE) else None
    if re.match(r"(?:don't|never|stop|no need to) (?:be|being|sound|sounding|act|acting) ", text, re.IGNORECASE) and (_TONE.search(text) or _LENGTH.search(text)):
        return []
    about_answers = re.search(_ANSWERS, text, re.IGNORECASE) or re.match(r"(?:always |never )?(?:be|keep|answer|reply|respond|use|write|talk|speak|stay|short|bullet|plain|get)\b", text, re.IGNORECASE)
    if not about_answers or (not standing and re.match(r"(?:write|give me|make|show|explain|list|tell)\b", text, re.IGNORECASE)):
        return None
    if not standing and re.match(r"(?:use|answer|reply|respond)\b", text, re.IGNORECASE) and not (_TONE.search(text) or _FORMAT.search(text) or _LENGTH.search(text)):
        return None
    if (shape := _FORMAT.search(text)) and not re.search(r"\b(?:code|tests?|commits?)\b", text):
        return found("response_format", f"no {shape[1]}" if never else shape[1])
    if (length := _LENGTH.search(text)) and not never:
        return found("response_length", length[0])
    if tone := _TONE.search(text):
        return [] if never else found("tone", tone[0])
    return None


def _when(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    """"When I ask for code, show the tests first"."""
    return _open(match[0], statement, 0.7)


RULES: tuple[Rule, ...] = (rule(_VERBS, r".+", _order),)
