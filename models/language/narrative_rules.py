"""Wordings that tell of an episode (project memory, Episode Types); what keeps one from it is in `narrative_sentences`.

English. Of a sentence the first rule that matches counts. Examples and near misses: add to
`tests/unit/test_narrative_rules.py` first.
"""

from __future__ import annotations

import re

from msgspec import Struct

from models.events.project_items import EpisodeKind

_START = r"(?:^|[,;:(!.] ?|\b(?:and|but|so|that|then|because|as|think|now|since|know) )"
_WE = rf"{_START}(?:i|we)"
_HOW = (
    r"(?:'ve| have| had)?(?: (?:just|finally|now|already|both|all|also|really|definitely|actually|successfully|jointly"
    r"|at last|together|therefore))*"
)
_BE = (
    r"(?:is|are|was|were|'s|'re|got|gets|has been|have been|am)(?: (?:now|all|finally|already|completely|both|fully))*"
)
TROUBLE = (
    r"(?:bugs?|issues?|problems?|errors?|defects?|leaks?|regressions?|outages?|vulnerabilit(?:y|ies)|bottlenecks?"
    r"|race conditions?|deadlocks?|crash(?:es)?|timeouts?|restarts?)"
)
"""What goes wrong."""
_DONE = (
    r"(?:finished|done|complete|completed|ready|live|shipped|launched|deployed|merged|released|implemented|delivered)"
)


class NarrativeRule(Struct, frozen=True):
    """A sentence that matches tells of an episode.

    Attributes:
        kind: Of which.
        gain: What such a wording adds to the kind's significance.
        pattern: Searched in the sentence, folded and without what leads into it.
        by_assistant: Whether it counts when an assistant says so.
    """

    kind: EpisodeKind
    gain: float
    pattern: re.Pattern[str]
    by_assistant: bool


def _rule(kind: EpisodeKind, gain: float, pattern: str, *, by_assistant: bool = True) -> NarrativeRule:
    return NarrativeRule(kind, gain, re.compile(pattern), by_assistant)


_PIVOTS = (
    _rule(
        EpisodeKind.PIVOT,
        0.0,
        rf"{_WE}\b[^.;]*?\b(?:switch|migrat|pivot)(?:e|ed|ing|ting)?\b(?: [\w-]+){{0,5}}?(?: away)?"
        r" (?:from\b.*\bto\b|to\b)"
        rf"|{_WE}(?:'re|'m| are| am) (?:moving|changing) (?:\w+ )*?from\b.*\bto\b"
        rf"|{_WE}{_HOW} (?:decided|agreed|chose) to (?:move|change|replace|drop|abandon|scrap)\b",
    ),
    _rule(
        EpisodeKind.PIVOT,
        0.0,
        rf"{_WE}{_HOW} (?:changed? (?:our|my) minds?|reversed|pivoted|changed (?:course|direction))\b",
    ),
    _rule(
        EpisodeKind.PIVOT,
        -0.05,
        rf"{_WE}\b[^.;]*\b(?:scrap|dropp?|abandon|replac)(?:ed|ing|e)?\b.* (?:in favou?r of|with)\b"
        r"|^(?:a )?(?:change of (?:plans?|direction|course)|new plan|back to the drawing board)\b(?! on\b)",
        by_assistant=False,
    ),
    _rule(
        EpisodeKind.PIVOT,
        -0.1,
        rf"{_WE}(?:'ll| will|'re| are)\b[^.;]* (?:use|using|build|building|go|going)\b.* (?:instead|after all)\b",
        by_assistant=False,
    ),
)
_BREAKTHROUGHS = (
    _rule(
        EpisodeKind.BREAKTHROUGH,
        0.0,
        r"\bbreakthroughs?\b|\beureka\b|^a+ha+\b(?=[!,. ])|\bit (?:finally |suddenly |just )?(?:all )?clicked\b"
        r"|\b(?:this|that|it) (?:is huge|changes everything)\b|\bthat's huge\b|\bgame[- ]changer\b"
        r"|\b(?:cracked|nailed) it\b",
    ),
    _rule(
        EpisodeKind.BREAKTHROUGH,
        -0.1,
        r"\bnow it (?:all )?makes sense\b|\bkey insight\b|\bfinally (?:understand|understood|see) (?:why|how|what)\b",
    ),
)
_SOLUTIONS = (
    _rule(
        EpisodeKind.PROBLEM_SOLVED,
        0.0,
        rf"\b\w+ ?{_BE} (?:fixed|solved|resolved|sorted out)\b(?! (?:at|to|price)\b)"
        rf"|\b{TROUBLE} (?:is|are|has|have|'s)(?: \w+)? (?:gone|history)\b"
        r"|^(?:all |and |now |finally )*(?:fixed|solved|resolved)(?: it| that)?(?=$|[!.,:;]| by\b)"
        rf"|{_WE}{_HOW} (?:fixed|solved|resolved|tracked down|got rid of)\b(?! (?:myself|ourselves|lunch|dinner))",
    ),
    _rule(
        EpisodeKind.PROBLEM_SOLVED,
        0.0,
        r"\b(?:that|this|which|\w+ing (?:\w+ ){0,4}?)(?: \w+ly)? ?(?:fixed|solved|resolved|cured)"
        r" (?:it|the|that|this|everything)\b"
        r"|\bdid the trick\b",
    ),
    _rule(
        EpisodeKind.PROBLEM_SOLVED,
        -0.05,
        r"\b(?:it|that|everything|\w+) (?:all )?(?:works|is working|runs|is stable) (?:now|again|at last|fine now)\b"
        r"|\bnow (?:it|everything) (?:all )?works\b|\b(?:finally|at last) works\b"
        r"|\bno longer (?:fails?|crash\w*|hangs?|happens?|leaks?|breaks?|times? out|restarts?)\b"
        rf"|\bno more {TROUBLE}\b",
    ),
)
_DECISIONS = (
    _rule(
        EpisodeKind.DECISION_MADE,
        0.0,
        rf"{_WE}{_HOW} (?:decided|chose|chosen|picked|settled on|agreed|opted|committed to)\b"
        r"(?! with\b| to (?:sleep|eat|rest|nap|go (?:home|to bed|for)|have (?:a|lunch|dinner)|take a|call it)\b)"
        r"|\b(?:the|my|our|final) decision (?:is|was)(?: to|:)|^decision:|^it(?:'s| is) (?:decided|settled)\b",
    ),
    _rule(
        EpisodeKind.DECISION_MADE,
        -0.1,
        rf"(?:{_WE}(?:'ll| will|'re| are|'m| am)(?: (?:just|definitely|then))?|{_START}let's) "
        r"(?:go(?:ing)? (?:with|for)|us(?:e|ing)|stick(?:ing)? (?:with|to)|stay(?:ing)? with|adopt(?:ing)?|build on)\b"
        r"(?! (?:it|that|this|you|the bathroom|a (?:walk|run|drink))\b)(?!.*\b(?:tomorrow|tonight|later|next time)\b)",
        by_assistant=False,
    ),
)
_COMPLETIONS = (
    _rule(
        EpisodeKind.TASK_COMPLETED,
        0.2,
        rf"{_WE}{_HOW} (?:launched|shipped|released|gone live|went live)\b"
        r"|\b(?:is|are|went|gone) (?:now |finally )?live\b(?! (?:in|music|show)\b)",
    ),
    _rule(
        EpisodeKind.TASK_COMPLETED,
        0.0,
        rf"{_WE}{_HOW} (?:finished|completed|deployed|delivered|published|merged|wrapped up|rolled out|implemented)\b"
        r"(?! (?:on|at|in|last|yesterday|lunch|dinner|eating|work)\b)"
        r"|\b(?!(?:i|we|you|he|she|who|lunch|dinner|coffee|food|tea|what)\b)"
        rf"\w+ {_BE} {_DONE}\b(?! (?:with|by|in|to)\b)",
    ),
    _rule(EpisodeKind.TASK_COMPLETED, -0.05, r"\ball (?:\w+ )?tests (?:pass|passed|are green)\b|\bup and running\b"),
)
_ISSUES = (
    _rule(
        EpisodeKind.ISSUE_IDENTIFIED,
        0.0,
        r"(?:\bthere(?:'s| is| are| seems to be)"
        r"|\b(?:i|we)(?:'ve| have)?(?: just| also)?(?: got| found| hit| noticed| see| discovered| ran into)"
        r"|\b(?:found|hit|discovered|spotted))"
        rf"(?: (?:an?|another|some|two|several|the))?(?: \w+){{0,3}}? {TROUBLE}\b",
    ),
    _rule(
        EpisodeKind.ISSUE_IDENTIFIED,
        0.0,
        rf"\bthe (?:\w+ )?{TROUBLE} (?:here )?(?:is|was) (?:also )?(?:that|with|in|how)\b"
        rf"|\b(?:that's|this is|that is|it's|is) an? (?:\w+ )?{TROUBLE}\b(?! (?:solver|of the past)\b)",
        by_assistant=False,
    ),
    _rule(
        EpisodeKind.ISSUE_IDENTIFIED,
        0.0,
        r"\b(?:keeps?|kept|started|starts) (?:on )?(?:crash|fail|hang|tim|restart|break|leak|dy|freez)ing\b"
        r"|\b\w+ (?:crashes|fails|hangs|freezes|times out|leaks memory)\b|\bdata loss\b",
        by_assistant=False,
    ),
    _rule(
        EpisodeKind.ISSUE_IDENTIFIED,
        -0.15,
        r"\b(?:is|are) (?:still |completely |totally )?(?:broken|down|unusable|corrupted)\b"
        r"|\b(?!i\b|we\b|you\b)\w+ (?:doesn't|does not|don't|won't|cannot|can't) (?:\w+ )?"
        r"(?:work|start|load|compile|build|connect|respond|render)\b",
        by_assistant=False,
    ),
)
RULES = (*_PIVOTS, *_BREAKTHROUGHS, *_SOLUTIONS, *_DECISIONS, *_COMPLETIONS, *_ISSUES)
KINDS = tuple(dict.fromkeys(rule.kind for rule in RULES))
"""In the order in which they count."""
