"""Patterns of constraints: demanded, forbidden, limited, due."""

from __future__ import annotations

from models.language.statements.wording import AMOUNT, DATE, NO_RULE, SEED_CONSTRAINT, SURE, THING, WE, Wording, any_of

_NO_NEED = (
    "sit lie rest call talk discuss look check see go leave wait think ask find figure understand know believe admit "
    "say tell hurry get_back "
    "meet hear read remember wonder imagine start_over be_going be_done thank chat sleep eat catch "
    "find_out try debug fix "
    "investigate reproduce log_in login access connect open open_it load seem help get come even "
    "sync stop_by afford_to_wait "
    "figure_out work_out clarify mention"
)
_STATIVE = r"(?: be| have)? ?" + any_of(
    "fine ok okay enough done good easy wrong joking kidding possible been something nice there "
    "right "
    "worth able_to_see better work do a_bug an_error a_mistake a_reason a_way a_problem a_typo "
    "working"
)
_MODAL = r"(?:must|should|shall only|cannot|can't|can not|needs? to|has to|have to|ought to)"
_RESTRICTION = "must should cannot can't can need needs has have ought"
CONSTRAINTS: tuple[Wording, ...] = (
    (
        SEED_CONSTRAINT,
        _RESTRICTION,
        (
            rf"^(?!(?:you|he|she|they|there|that|this|these|those|one|things?|something|explain|describe|list"
            rf"|show|tell|write|give|summari[sz]e|add|check|i don't|we "
            rf"don't)\b)(?:[^,;:]{{1,80}}?,? )??"
            rf"(?P<who>(?:[\w'./-]+ ){{0,7}}?[\w'./-]+) (?:all |both |also |really |still |only |just |either "
            rf"|always |never |absolutely )*{_MODAL}(?: (?:also|only|always|never|not|all|really|at least"
            rf"|definitely))*"
            rf"(?!{_STATIVE}\b)(?! run(?:[,.;]|$| now\b))(?! (?:have|be) been)(?! have (?:[a-z]+(?:ed|en)|had"
            rf"|made|got|lost|left|found"
            rf"|put)\b)(?! (?:{any_of(_NO_NEED)})\b) \w"
        ),
    ),
    (
        SEED_CONSTRAINT,
        "allowed permitted forbidden required mandatory prohibited obligatory",
        (
            r"\b(?:is|are)(?: not|n't)? (?:strictly )?(?:allowed|permitted|forbidden|required|mandatory"
            r"|prohibited|obligatory)\b"
        ),
    ),
    (
        SURE,
        "never ever",
        r"^(?:please )?(?:never|don't ever|do not ever) (?!mind\b|heard\b|seen\b|had\b|been\b)[a-z]+ \w",
    ),
    (
        SURE,
        "max maximum min minimum limit",
        (
            r"^(?:the |our )?(?:max|maximum|min|minimum)\b[^,]{2,50} (?:is|are) (?:about )?\d|\bhard limit of "
            r"\d"
        ),
    ),
    (
        SURE,
        "limited restricted",
        rf"(?:{WE}|^(?:the|our) [\w ]{{1,40}})(?:'re|'m| are| am| is) (?:limited|restricted) to\b",
    ),
    (
        SURE,
        "circumstances nothing nobody",
        r"\bunder no circumstances\b|^(?:nothing|nobody|no one) (?:can|may|must|should) \w",
    ),
    (
        SURE,
        "can't cannot must",
        (
            rf"^(?:can't|cannot|must|must not|mustn't) (?:also |only |always |never |not )*"
            rf"(?!(?:{any_of(_NO_NEED)}|be|have|{_STATIVE})\b)[a-z]+ \w"
        ),
    ),
    (
        SURE,
        "allow allows permit permits let lets accept accepts pay pays",
        (
            r"^(?:the|our|my|their|[\w'-]+ law|city|council) ?(?:[\w'-]+ ){1,4}?(?:(?:doesn't|does not|don't|do not"
            r"|won't|will not|never|only) (?:allow|permit|let|accept|pay)s?\b)"
        ),
    ),
    (
        SURE,
        "only just most more",
        (
            rf"{WE}(?: only (?:have|get|got)| (?:have |got )(?:only|just|at most|no more than)|'ve (?:only )?got(?: "
            rf"only| just)?|'ve (?:only|just)) "
            rf"(?:about )?{AMOUNT}"
        ),
    ),
    (
        SURE,
        "runs run expires expire due",
        rf"\b(?:runs? out|expires?|(?:is|are) due)(?: on| by| in| at| at the)? {DATE}",
    ),
    (
        SURE,
        "rule policy law regulations regulation",
        r", (?:an? |it's |that's |per )?(?:\w+ )?(?:rule|policy|law|regulations?)$",
    ),
    (
        SURE,
        "max maximum min minimum most more extensions exceptions exception latest cap limit",
        (
            r"^(?!.*\b(?:budget|deadline|launch|release) (?:is|are)\b)(?!(?:i|you|he|she|they|there|it|this"
            r"|that) )(?!we (?!can\b|may\b|must\b))"
            r"(?=.*(?:\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve)\b))[^?]*"
            r"\b(?:max|maximum|minimum|at most|no(?:t)? more than|no longer than|no less than|hard (?:cap|limit)"
            r"|at the latest"
            r"|no later than|(?<!\w)min(?= \d)|no (?:extensions?|exceptions?)|not (?:one|a \w+) (?:more|less))\b"
        ),
    ),
    (
        SURE,
        "no",
        (
            rf"^no (?!{any_of(NO_RULE)}\b)[\w-]+(?: [\w'-]+){{0,3}} (?:in|on|at|after|before|during|inside|from"
            rf"|into|near"
            rf"|over|under|without|past)\b(?!.* (?:yet|today|now|so far)$)(?!.*\b(?:please|for (?:me|us))\b) ?\w"
        ),
    ),
    (
        SURE,
        "everything every each all nobody nothing everyone",
        (
            r"^(?:everything|every [\w ]{2,40}|each [\w ]{2,40}|all [\w ]{2,40}|everyone) (?:needs?|stays?|goes through"
            r"|gets) (?!to know\b)\w|^(?:nobody|no one|nothing) (?:gets|goes|leaves|enters|is|gets) (?!wrong"
            r"|here|to be)"
            r"\w.*\b(?:without|unless|until|before|after)\b"
        ),
    ),
    (
        SURE,
        "insists insist requires demands demand",
        r"^(?:the|our|my) [\w' -]{2,40}? (?:insists? (?:on|that)|requires?|demands?) \w",
    ),
    (
        SURE,
        "may",
        (
            rf"^(?:without [^,]{{2,30}},? )?(?:{THING}may not be [a-z]+(?:ed|n|t)\b|(?:we|you|users) may (?:not"
            rf"|only) (?!need|have|be)\w)"
        ),
    ),
    (
        SURE,
        "only",
        (
            rf"^{THING}only (?:fits?|holds?|seats?|gives?|covers?|lasts?|works?|takes?|accepts?|allows?|lets?|opens?"
            rf"|runs?|counts?|pays?|permits?) \w"
        ),
    ),
    (SURE, "has have needs need", rf"^(?:has|have|needs) to (?!(?:{any_of(_NO_NEED)}|be|have)\b)[a-z]+ \w"),
    (SURE, "anything anyone any", r"^any(?:thing|one|body| \w+) (?:[\w'-]+ ){0,5}?(?:needs?|has to|requires?|gets) \w"),
    (
        SURE,
        "close closes end ends",
        (
            r"^(?:(?:the|our) )?(?:[\w-]+ )?(?:applications?|submissions?|registrations?|entries|calls?|bookings?) "
            rf"(?:closes?|ends?) (?:on |in |at )?{DATE}"
        ),
    ),
    (SURE, "way", r"\bno way (?:we|i|you) can\b"),
    (
        SURE,
        "you",
        (
            r"^you (?:can't|cannot|may not|mustn't) [\w' ]* (?:more than|before|after|without|until|longer than|at "
            r"the same time)\b"
        ),
    ),
    (SURE, "without", r"^without [^,]{2,30},? (?:we|nobody|no one|you) (?:can't|cannot|may not|must not|mustn't) \w"),
)
