"""Attribution filter: code, quotes, pastes, fiction, tasks, hypotheticals, voices that do not speak for the user."""

from __future__ import annotations

import re
import unicodedata

from models.text.words import HEAD_CHARS, TAIL_CHARS, word_set

MAX_LINES = 30
"""A message of more lines that are not blank is taken for a pasted document."""
MAX_LIST_ITEMS = 5
"""A list of more items is taken for a pasted one."""
MAX_QUOTED_WORDS = 3
"""Up to so many words in quotes are a name or a term, more are somebody's speech."""

_QUOTES = str.maketrans("\u2019\u2018\u02bc\u00b4\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014\u00a0", '\'\'\'\'"""""-- ')
_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_SPEECH = re.compile(
    r'"([^"\n]{1,600})"|(?<![\w\'])\'((?:[^\'\n]|(?<=\w)\'(?=\w)){3,400})\'(?!\w)'
    r"|`([^`\n]{1,300})`"
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|my|me|we|you)\b", re.IGNORECASE)
_SPEAKER = re.compile(
    r"[ \t]*(?:\[[^\]\n]{1,30}\][ \t]*)?(?:\*\*)?(?:user|human|assistant|ai|bot|system|customer"
    r"|agent|interviewer"
    r"|interviewee|q|a|me|him|her|[A-Z][a-z]{1,15})(?:\*\*)?[ \t]*(?:\(\d[^)\n]{0,15}\))?:(?:\*\*)?[ \t]",
    re.IGNORECASE,
)
_ITEM = re.compile(r"[ \t]*(?:[-*\u2022+]|\d{1,3}[.)])[ \t]+\S")
_CITED = re.compile(
    r"^(?!.*\b(?:my|for you|you should|i want)\b).*\b(?:says?|said|reads?|states?|wrote|rules?|"
    r"guidelines?|policy|readme|docs?|manual"
    r"|guide|checklist|list|notes?|spec|requirements?)\b[^.?!]*:[ \t]*$",
    re.IGNORECASE,
)
"""A line that leads into a list of somebody's rules."""
_CODE = re.compile(
    r"[ \t]*(?:(?:def|class|import|from|return|const|let|var|function|public|private|fn|func"
    r"|package|#include|SELECT"
    r"|INSERT|UPDATE|CREATE|echo|print|raise|elif|else:|try:|except)\b.*[=(){};:*]|[{}\[\]<>$#/@"
    r"|].*|.*(?:[;{}]|\);?|=>)"
    r"[ \t]*$|[\w.\"']+[ \t]*=[ \t]*\S.*|(?:[ ]{4}|\t)\S.*[=(\[{:].*|\d{4}-\d\d-\d\d[ T].*|[\w.]*Error: .*)"
)
_TASK_WORDS = word_set(
    "translate proofread rewrite rephrase paraphrase summarise summarize polish edit correct fix "
    "review classify "
    "analyse analyze annotate transcribe draft write compose generate critique improve check "
    "caption subtitle label "
    "shorten parse grammar essay letter email bio lyrics sentence paragraph poem story novel "
    "script dialogue sample "
    "test example excerpt transcript passage text resume cover post tweet review quote say says "
    "translation create line phrase word prompt string output label error sign book poem: song "
    "input "
    "source original message description speech snippet code document log chat article comment note complete"
)
_TASK = re.compile(
    # Work on a text: all that follows may be the text.
    r"(?<!you )(?<!always )(?<!never )(?<!i )\b(?:translate|proofread|rewrite|rephrase|paraphrase"
    r"|summari[sz]e|polish|edit|correct|fix|review|classify"
    r"|analy[sz]e|annotate|critique|improve|check|complete|continue|shorten|parse)\b[^.?!\n]{0,40}?"
    r"\b(?:this|the following|these|below|(?:my|a|an|the|this|his|her) (?:\w+ )?(?:e-?mail|essay|letter|bio"
    r"|text|sentences?|message|paragraph|speech|post|summary|intro|introduction|resume|cv|caption"
    r"|lyrics|draft|story"
    r"|poem|statement|profile|review|transcript|grammar|wording|tone))\b"
    r"|\b(?:translate|proofread|rewrite|rephrase|paraphrase|summari[sz]e|polish)\b[^.?!\n]{0,60}:"
    r"|\b(?:(?:here(?:'s| is| are)|this is|below is|found|got|read|saw|received|see)\b[^.?!\n]{0,60}?"
    r"\b(?:e-?mail|essay|letter|bio|text|message|paragraph|excerpt|transcript|passage|post|article"
    r"|review|log|chat"
    r"|resume|cv|lyrics|draft|document|snippet|code|dialogue|conversation|note|comment|tweet"
    r"|script|story|poem|quote"
    r"|sentence|example|log)\b[^.?!\n]{0,40}(?::|\n|$))"
    # A title with a colon.
    r"|(?:^|\n)[ \t]*(?:[\w']+ ){0,3}(?:poem|lyrics|song|text|e-?mail|essay|draft|letter|story"
    r"|quote|input|source|original|sentence|passage"
    r"|excerpt|transcript|message|example|paragraph|bio|speech|resume|description|translation"
    r"|grammar check|dialogue)[ \t]*:(?![ \t]*\S+@)"
    # Something to be written, in whose text "I" is anybody.
    r"|(?<!you )(?<!always )(?<!never )(?<!i )\b(?:write|draft|compose|generate|create|make up"
    r"|come up with|give me|need|help me (?:write|with)|finish"
    r"|continue|working on|writing)\b(?: (?:me|us|up|out|a|an|the|my|some|one|another|this|short"
    r"|quick|little|new|for"
    r"|\w+))?(?: (?:\w+[ -]){0,3}?)?(?:story|poem|song|lyrics|novel|dialogue|monologue|screenplay"
    r"|scene|fanfic\w*|script"
    r"|play|sonnet|haiku|limerick|e-?mail|letter|bio|speech|essay|blog ?post|tweet|post|cover letter|sentence"
    r"|sentences|profile|character|rap|fiction|ad|sketch|diary entry|journal entry|message|text"
    r"|caption|test data"
    r"|persona|quote|review|sample \w+|example \w+)s?\b"
    r"|\b(?:how (?:do|would|can|should) (?:you|i|we|one) (?:say|spell|write|pronounce)|what does"
    r"|the (?:phrase|sentence"
    r"|word|line|lyric|song|prompt|string|text|output|label|error|page|sign|book|character"
    r"|narrator|protagonist|hero"
    r"|heroine|villain)(?: \w+)? (?:says?|goes|reads?|is|was|said|tells?|thinks?))\b",
)
_FICTION_WORDS = word_set(
    "pretend roleplay role-play role roleplaying act you're are play i'll playing novel story "
    "book game dream campaign "
    "screenplay script fanfic film movie scene song d&d d comic scenario example exercise "
    "simulation skit universe fantasy "
    "character persona protagonist narrator hero heroine villain character's let's practice "
    "practise dreamt dreamed time perspective view pov"
)
_SUPPOSE_WORDS = word_set(
    "imagine suppose supposing assume assuming hypothetical hypothetically if let's argument "
    "world say wish joking "
    "kidding jk theoretically theory example instance e true"
)
_FICTION = re.compile(
    r"\b(?:you be (?:the|a|my)\b|pretend|role-?\s?play\w*|act (?:as|like)|you(?:'re| are) (?:a|an|the|my|now)\b|play"
    r" (?:the|a) (?:role|part)"
    r"|i(?:'m|'ll be| am| will be|'ll play| play) (?:the|playing|a) [^.,\n]{0,30}?(?:and you|in"
    r" (?:this|our|the) (?:game|scene"
    r"|story|campaign))"
    r"|in (?:my|the|this|our|a) (?:\w+ )?(?:novel|story|book|game|dream|campaign|screenplay|script"
    r"|fanfic\w*|film|movie"
    r"|play|scene|song|d&d|comic|scenario|example|role-?play|exercise|simulation|skit|universe|fantasy)\b"
    r"|(?:my|the|his|her|their|main|a) (?:main )?(?:character|persona|protagonist|narrator|hero"
    r"|heroine|villain)(?:'s|s)?\b"
    r"|let's (?:play|act|do a (?:dialogue|dialog|scene|role)|practi[cs]e)|(?:dialogue|dialog"
    r"|conversation|interview|speaking) (?:practi[cs]e|exercise)"
    r"|practi[cs]e (?:a|my|the) (?:dialogue|dialog|conversation|interview)|i (?:had a dream|dreamt"
    r"|dreamed)|in character|once upon a time|from the (?:perspective|point of view|pov) of)",
)
_DENYING = word_set("not it's")
_SUPPOSED = re.compile(
    r"\b(?:it's not (?:that|like|as if|true that) (?:i|my)\b|(?:isn't|not) true that\b|imagine|"
    r"suppose|supposing|assum(?:e|ing) (?:that|for|i|i'm|my|we|you|there)\b"
    r"|hypothetical(?:ly)?|what if|let's (?:say"
    r"|pretend|imagine|assume)"
    r"|for the sake of argument|in a world where|(?<!i'd )(?<!would )say (?:i|i'm|my|that i)\b|i wish|if only|just"
    r" kidding|jk\b|if i (?:were|was|had)|if my"
    r"|theoretically|in theory|as an example|for (?:example|instance)|e\.g\.)",
)
_REPORT_WORDS = word_set(
    "says say said saying tells told wrote writes texted claims claimed thinks believes believed "
    "thought asks asked "
    "replied goes reads shouted yelled insists insisted swears joked jokes announced assumes "
    "assumed quote quotes "
    "quoted quoting posted titled like telling sings sang"
)
_REPORTED = re.compile(
    r"\b(?:says?|said|saying|tells?|told(?! me to (?:avoid|stay off|stay away|cut|give up|stop eating|"
    r"limit|keep off))|wrote|writes|texted|claim(?:s|ed)|thinks|believe[sd]"
    r"|thought|ask(?:s|ed)|replied"
    r"|goes|reads|shouted|yelled|insist(?:s|ed)|swears|joke[sd]|announced|assume[sd]|quot(?:es?|ed"
    r"|ing)|posted|titled"
    r"|(?:was|were|is|be|he's|she's|they're) like|keeps (?:saying|telling)|sings|sang)\b(?!:?,? *\")",
)
_OWN_SPEECH = (
    "i ",
    "i've ",
    "i just ",
    "i already ",
    "to ",
    "i only ",
    "stop ",
    "avoid ",
    "quit ",
    "never ",
    "always ",
    "don't ",
)
"""Behind these the user speaks, or is spoken to."""


def plain(content: str) -> str:
    """The text that is looked at, case kept: head and tail of a long one, plain quotes, no invisible characters."""
    if len(content) > HEAD_CHARS + TAIL_CHARS:
        content = f"{content[:HEAD_CHARS]}\n{content[-TAIL_CHARS:]}"
    if not content.isascii():
        content = unicodedata.normalize("NFKC", content).translate(_QUOTES)
        if not content.isprintable():
            content = "".join([c for c in content if c == "\n" or c.isprintable()])
    return content


def own_words(text: str, words: set[str]) -> str:
    """Without code, quotes, transcripts and pasted lines, and without what follows a task or a play that is begun.

    `words` are the text's own, folded: most checks are skipped without their words.
    """
    if "```" in text or "~~~" in text:
        text = _FENCE.sub("\n", text)
    if "\n" in text:
        text = _own_lines(text)
    if '"' in text or "'" in text or "`" in text:
        text = _SPEECH.sub(_term, text)
    if not _FICTION_WORDS.isdisjoint(words):
        text = _before(_FICTION, text)
    if not _TASK_WORDS.isdisjoint(words):
        text = _before(_TASK, text)
    return text


def supposed_from(lower: str, words: set[str]) -> int:
    """Where a sentence, folded, begins to suppose something or to report what others say; its length if it does not."""
    if (not _SUPPOSE_WORDS.isdisjoint(words) or words >= _DENYING) and _SUPPOSED.search(lower):
        return 0
    if not _REPORT_WORDS.isdisjoint(words):
        for found in _REPORTED.finditer(lower):
            if not lower.endswith(_OWN_SPEECH, 0, found.start()):
                return found.start()
    return len(lower)


def _term(quoted: re.Match[str]) -> str:
    inside: str = quoted[quoted.lastindex or 0]
    if len(inside.split()) > MAX_QUOTED_WORDS or inside[-1] == "," or _FIRST_PERSON.search(inside):
        return '"'
    return inside


def _before(marker: re.Pattern[str], text: str) -> str:
    """What was said before the marker's sentence, of a task before its clause, still counts."""
    found = marker.search(text.lower())
    if found is None:
        return text
    ends = (
        (". ", "! ", "? ", "\n", "; ")
        if marker is _FICTION
        else (". ", "! ", "? ", "\n", "; ", ", ", " - ", " and ", " but ")
    )
    return text[: max(text.rfind(mark, 0, found.start()) for mark in ends) + 1]


def _own_lines(text: str) -> str:
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > MAX_LINES:
        return ""
    spoken = [bool(_SPEAKER.match(line)) for line in lines]
    if sum(spoken) > 1:
        lines = lines[: spoken.index(True)]
    lines = [line for line in lines if not line.lstrip().startswith(">")]
    coded = [bool(_CODE.match(line)) for line in lines]
    if sum(coded) > 1:
        lines = [line for line, code in zip(lines, coded, strict=True) if not code]
    cited = next((n for n, line in enumerate(lines) if _CITED.search(line)), None)
    if cited is not None:
        lines = [line for n, line in enumerate(lines) if n <= cited or not _ITEM.match(line)]
    if sum([bool(_ITEM.match(line)) for line in lines]) > MAX_LIST_ITEMS:
        lines = [line for line in lines if not _ITEM.match(line)]
    letter = next((n for n, line in enumerate(lines) if _is_salutation(line)), None)
    return "\n".join(lines[:letter])


def _is_salutation(line: str) -> bool:
    """A letter's first line: "Dear Ms Berg,"."""
    return line.startswith(("Dear ", "To whom", "Subject:", "From:"))
