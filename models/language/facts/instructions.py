"""Reader of standing orders: how the user wants to be answered from now on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from models.language.facts import vocabulary
from models.language.facts.kinds import FORMAT, LENGTH, TONE, UNIT, tone_of
from models.language.facts.statements import Statement
from models.language.facts.values import INSTRUCTION, Build, Finding, fact, slug
from models.text.words import word_set

_STANDING = 0.9
_STYLE = 0.65
"""Of an order about answers as such, not said to hold from now on."""
_IMPORTANCE = 0.85
_MAX_RULE_WORDS = 24
_MARKS = re.compile(
    r"\b(?:always|never|every|each (?:time|answer|reply|response|message|email|of your)|before (?:you "
    r")?(?:answer|reply|respond)\w*|all (?:of )?(?:your|future|my)|from now on|by default"
    r"|whenever|ever|going forward|in (?:the )?future|permanently|anymore|default to|(?:anything"
    r"|everything|all [\w ]{2,40}?|emails?|code) you (?:write|send|give|do|make|run)|before you"
    r"|you write for me|unless i|any longer|from here"
    r" on)\b",
    re.IGNORECASE,
)
_STRIPPED = re.compile(
    r"(?:^|\s)(?:always|from now on|please|in (?:the )?future|going forward|by default|ever|every"
    r" time|anymore|from here on(?: out)?|in all (?:your|of your|future) (?:answers|replies"
    r"|responses)|at all times)(?=[\s,.]|$),?",
    re.IGNORECASE,
)
_ONE_OFF = re.compile(
    r"\b(?:this|these|that|it|the following|below|above|here|the question|my question|just once"
    r"|for now|today|tomorrow|tonight|him|her|them|again)\b",
    re.IGNORECASE,
)
_LANGUAGE = re.compile(
    rf"\b(?:in|to|use|speak|only) (?:\w+ )?({'|'.join(sorted(vocabulary.NATURAL_LANGUAGES))})\b", re.IGNORECASE
)
_ANSWERING = re.compile(
    r"(?:always |only |never |just |all )*(?:answer|reply|respond|speak|talk|write(?: back)?"
    r"|communicate|chat|use|stick to|switch|give|your|explain)\b",
    re.IGNORECASE,
)
_IN_LANGUAGE = re.compile(
    rf"(?:always |only |just )*(?:(?:answer|reply|respond|speak|talk|write|communicate|chat)(?: "
    rf"back)?(?: (?:to|with) me)?(?: only| just| exclusively| solely| purely)?"
    rf"(?: in)?|(?:stick|switch|keep) to|use) (?:\w+ )?(?:{'|'.join(sorted(vocabulary.NATURAL_LANGUAGES))})\b",
    re.IGNORECASE,
)
_ONLY_LANGUAGE = re.compile(
    rf"(?:only |just |always )?({'|'.join(sorted(vocabulary.NATURAL_LANGUAGES))})(?: only| always)?(?: please)?",
    re.IGNORECASE,
)
_NO = re.compile(
    r"(?:never|don't|no|avoid|skip|stop|without|drop|leave out|omit|refrain from|do without|not"
    r"|quit|zero|cut)\b|.*\b(?:without|no|never|don't|not|free of)\b",
    re.IGNORECASE,
)
_ANSWERS = re.compile(
    r"\b(?:answers?|repl(?:y|ies)|responses?|explanations?|messages|things|me|summaries|output)\b", re.IGNORECASE
)
_CAP = re.compile(
    r"\b((?:under|below|at most|(?:no )?more than|less than|max(?:imum)?(?: of)?|up to|within|in|to"
    r"|limit\w* to|fewer than|maximum) (?:a |an )?(?:max(?:imum)? of )?(?:\d+|one|two|three|four"
    r"|five|a couple of|a few) (?:words?|sentences?|lines?|paragraphs?|bullets?|bullet points"
    r"|characters))\b",
    re.IGNORECASE,
)
_FORBIDDING = re.compile(r"never|don't|stop", re.IGNORECASE)
_FORBIDDING_MANNER = re.compile(
    r"(?:don't|never|stop|no need to) (?:be|being|sound|sounding|act|acting) ", re.IGNORECASE
)
_CITING = re.compile(
    r"(?:cite|include|give|add|provide|no|skip|don't)\b.*\b(?:sources|citations|references)$", re.IGNORECASE
)
_MEASURING = re.compile(
    r"(?:always |only |please |never )?(?:use|give|stick|convert|show|express|measurements|all|your|metric|in"
    r"|answer|write"
    r"|keep|work|temperatures)\b",
    re.IGNORECASE,
)
_MANNER = re.compile(
    r"(?:always |never |don't |ever |avoid |stop |no |only )*(?:be|using|keep|answer|reply|respond|use"
    r"|write|talk|speak"
    r"|stay|short|bullet|plain|get)\b",
    re.IGNORECASE,
)
_ONE_TASK = re.compile(r"(?:write|give me|make|show|explain|list|tell)\b", re.IGNORECASE)
_OF_CODE = re.compile(r"\b(?:code|tests?|commits?)\b", re.IGNORECASE)
_WANTED = re.compile(r"^i(?:'d like| (?:want|need|expect))(?: you to)? ", re.IGNORECASE)
_MIN_RULE_WORDS = 2
_MAX_KEY_WORDS = 5
_EMOJI = re.compile(r"\bemoji(?:s|es)?\b|\bemoticons?\b|\bsmileys?\b", re.IGNORECASE)
_CITE = re.compile(r"\b(?:cite|citations?|sources?|references)\b", re.IGNORECASE)
_COMMENTS = re.compile(
    r"\b(?:comments?|docstrings?)\b.*\bcode\b|\bcode\b.*\bcomments?\b|\bcode comments?\b|\bcomment"
    r" (?:the|your|my) code\b|\b(?:add|write|use|include|no|without|put|leave) (?:\w+ )?comments\b",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"(?:always|never|ever|not) (?:\w+ed|\w+ing|\w*[^s\W]s|on|in|at|a|the|again|too|there|here"
    r"|good|nice|been|had|got|did|have|am|knew"
    r"|went|saw|heard|thought|mind|happy|glad|fun|up|down|ready|so|great|full|wanted|worth|better|best|enough)\b"
    r"|(?:don't|never|ever)(?: ever)? (?:give up|quit|forget|lose|be afraid|hesitate|let|settle"
    r"|stop (?:believing|dreaming|learning)"
    r"|underestimate|say never|worry|know|think|get me wrong)\b"
    r"|(?:all|every|your|each)\b(?!.*\b(?:should|must|needs? to|has to|have to|in (?:metric|celsius"
    r"|fahrenheit|(?-i:[A-Z]))|to end|to start|to be)\b)"
    r"|(?:all|every) (?:my|our|the|of|day|time|single|night|morning|week|year)\b",
    re.IGNORECASE,
)
"""Said of oneself behind a subject that is left out: "and never used it"."""
_HABITS = re.compile(
    r"(?:stop|quit|avoid|don't|no need to|skip|no more|no|drop|you don't (?:have|need) to|refrain"
    r" from|cut out|leave out) (?:\w+ ){0,3}?(?:apologi[sz]\w*|disclaimers?|jargon|slang"
    r"|exclamation (?:marks|points)|filler|small talk"
    r"|flattery|compliment\w*|praise|praising|sugar-?coat\w*|hashtags|caveats|warnings|lectur\w+"
    r"|preamble|intros?|introductions|pleasantries"
    r"|follow-up questions|puns|jokes|em[- ]dashes|spoilers?|swearing|swear words|repeat\w* (?:my"
    r" question|yourself)|moraliz\w+|metaphors|acronyms|abbreviations|passive voice)\b"
    r"|(?:stop|quit) (?:saying|calling|using|asking|adding|telling|starting|ending|giving|suggesting|recommending"
    r"|reminding|explaining|assuming|being) (?!(?:this|that|it|me that|the)\b)\w+",
    re.IGNORECASE,
)
_MINOR = word_set(
    "a an the to of in on at for with and or but by as is are be my your me you i it that this "
    "when whenever if "
    "please always then any all from so do before after unless without"
)
_TALK = re.compile(
    r"never mind|let (?:me|us) know|don't (?:worry|know|think)|no (?:problem|worries|idea|i)\b|stop me|all good",
    re.IGNORECASE,
)
_MOTTO = re.compile(
    r"(?:always|never|just|don't)? ?(?:ever )?(?:look on|look (?:for|at) the|believe|remember(?: "
    r"that)? (?:you|to|that|how|the|who)|stay (?:strong|positive"
    r"|true|safe|healthy|humble|hungry|curious|hopeful|focused|motivated)|smile|dream|say never|say "
    r"die|trust (?:yourself|your|the)"
    r"|be (?:yourself|kind|proud|happy|grateful|thankful|true|there|careful|afraid|ashamed|scared|"
    r"sorry|a )|have fun|hold on|count on"
    r"|take (?:care|it easy|time)|cherish|keep (?:going|pushing|moving|fighting|smiling|dreaming|on |"
    r"up |your (?:head|chin|spirits))|follow (?:your|the)"
    r"|(?:look|be) (?:after|out)|do your best|go for|get (?:up|back)|chase|live|love|lose (?:hope|"
    r"sight|faith)|let (?:it|them|him|her|any|the|that|fear|your)"
    r"|make (?:time|room|sure)|expect|appreciate|support|learn|grow|enjoy|strive|improve|reach|push|work (?:hard|on))\b"
    r"|.*\b(?:your(?:self| dreams?| heart| passion| skills?| goals?| head up| best| friends?| family| "
    r"loved ones| body| mind)"
    r"|my (?:wife|husband|mum|mom|dad|boss|kids|sister|brother|friend)|in life|at work|^(?:we|i|they)|"
    r"there for (?:me|you|each)|each other)\b",
    re.IGNORECASE,
)
"""What one wishes a friend, or asks of nobody."""


def _order(match: re.Match[str], statement: Statement) -> Iterable[Finding]:
    text = " ".join(_WANTED.sub("", match[0]).split()[:_MAX_RULE_WORDS]).strip(" .,!\"'")
    standing = statement.standing or bool(_MARKS.search(text))
    if _TALK.match(text) and not statement.standing:
        return []
    if _DONE.match(text) or re.search(r" (?:is|was) an? ", text) or _MOTTO.match(text):
        return []
    known = _of_style(text, statement, standing=standing)
    if known is not None:
        return known
    if not standing:
        if _HABITS.match(text) and not statement.passing:
            return _open(text, statement, _STYLE)
        return []
    return _open(text, statement, _STANDING)


def _open(text: str, statement: Statement, confidence: float) -> list[Finding]:
    said = " ".join(_STRIPPED.sub(" ", text).split()).strip(" ,.")
    if statement.condition and said:
        said = f"{statement.condition}, {said}"
    words = [
        word for word in slug(said.removeprefix(statement.condition)).split("_") if word not in _MINOR and len(word) > 1
    ]
    if len(said.split()) < _MIN_RULE_WORDS or len(words) < _MIN_RULE_WORDS:
        return []
    return list(fact(INSTRUCTION, "_".join(words[:_MAX_KEY_WORDS]), said, statement, confidence, _IMPORTANCE))


def _of_style(text: str, statement: Statement, *, standing: bool) -> list[Finding] | None:
    """A rule about answers whose key is known; None if it is about something else, empty if it is for once."""
    known = _about(text, never=_NO.match(text) is not None, standing=standing)
    if known is None:
        return None
    if (
        known[0] == "tone"
        and not standing
        and not re.search(r"\b(?:me|answers?|repl\w+|responses?|tone|style)\b", text)
    ):
        return []
    if not known[1] or not (standing or not (statement.passing or _ONE_OFF.search(text))):
        return []
    return [*fact(INSTRUCTION, *known, statement, _STANDING if standing else _STYLE, _IMPORTANCE)]


def _about(text: str, *, never: bool, standing: bool) -> tuple[str, str] | None:
    """Key and value of a rule about answers; without a value if nothing is to be kept of it."""
    frequency = "never" if never else "always"
    if _EMOJI.search(text):
        return "emojis", frequency
    if (language := _language_of(text, standing=standing)) is not None:
        return "answer_language", language
    if _COMMENTS.search(text):
        return "code_comments", frequency
    if _CITE.search(text) and (standing or _CITING.match(text)):
        return None if never and not _CITING.match(text) else ("citations", frequency)
    if (unit := UNIT.search(text)) and _MEASURING.match(text) and not never and " it " not in text:
        return "units", unit[1]
    return _shape_of(text, never=never, standing=standing)


def _language_of(text: str, *, standing: bool) -> str | None:
    """The language of answers a rule names, empty if it is for one text; None if it is about something else."""
    if (
        (language := _LANGUAGE.search(text))
        and _ANSWERING.match(text)
        and not _FORBIDDING.match(text)
        and "spelling" not in text.lower()
        and not _COMMENTS.search(text)
    ):
        return language[1].capitalize() if standing or _IN_LANGUAGE.match(text) else ""
    only = _ONLY_LANGUAGE.fullmatch(text) if standing else None
    return only[1].capitalize() if only else None


def _shape_of(text: str, *, never: bool, standing: bool) -> tuple[str, str] | None:
    """Length, format and tone of answers."""
    names_answers = _ANSWERS.search(text, max(text.find(" "), 0)) is not None
    if (cap := _CAP.search(text)) and (standing or names_answers):
        return "response_length", cap[1]
    shape, length, tone = FORMAT.search(text), LENGTH.search(text), TONE.search(text)
    if _FORBIDDING_MANNER.match(text) and (length or tone):
        return "tone", ""
    if not (names_answers or _MANNER.match(text)) or (not standing and _ONE_TASK.match(text)):
        return None
    if shape and not _OF_CODE.search(text):
        return "response_format", f"no {shape[1]}" if never else shape[1]
    if length and not never:
        return "response_length", length[0]
    return ("tone", "" if never else tone_of(tone[0])) if tone else None


READERS: Mapping[str, Build] = {"order": _order}
"""By the name that rows give."""
