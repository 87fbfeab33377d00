"""Patterns of decisions: chosen, settled, changed, refused."""

from __future__ import annotations

from models.language.statements.wording import AMOUNT, HOW, OTHER, SEED_DECISION, SURE, THING, WE, Wording, any_of

_CHOOSE = (
    "use go_with go_for go_ahead_with choose pick select adopt take keep stick_with stay_with switch "
    "move migrate replace "
    "drop remove build write rewrite host deploy store run ship release publish license split merge "
    "name call support "
    "implement add introduce postpone start_with stop sell charge leave put set separate "
    "automate encrypt cache "
    "cut skip begin port wrap extract rely_on base structure organise organize limit restrict "
    "open_source standardise "
    "standardize freeze park defer ditch ban require redesign redo rework refactor archive delay "
    "outsource cap hire buy "
    "assign schedule bill"
)
_CHOOSING = (
    "going_with going_for going_to_use switching moving migrating replacing dropping adopting "
    "sticking_with staying_with "
    "rewriting taking settling_on choosing retiring abandoning ditching"
)
_CHOSEN = (
    "decided chose chosen selected picked settled_on settled_for opted concluded resolved_to "
    "committed_to went_with gone_with"
)
_TASKS = (
    "write take put leave call name keep set run begin start_with store cut sell stop build buy schedule assign drop "
    "move remove add"
)
_NO_TASK = rf"(?!(?:i'll|i will|i'm going to|i am going to)(?: also| just| now| then)* {any_of(_TASKS)}\b)"
"""What one person is about to do is a task, where the same of the team is a decision."""
_UNDERWAY = (
    "trying looking working getting having waiting thinking hoping going talking running struggling being wondering "
    "considering asking seeing missing losing making discussing meeting sitting standing aiming planning preparing "
    "testing debugging investigating fixing reading writing debating arguing experimenting evaluating comparing "
    "exploring learning feeling expecting heading dealing deciding weighing leaning doing_great doing_fine doing_well "
    "leaving coming targeting hitting facing wasting stuck finding checking using wanting needing seeking approaching "
    "nearing growing falling catching finishing toying targeting not_deciding just still"
)
"""What is going on, where other verbs in this form are what was decided: "we're closing on Mondays"."""
_GERUNDS = (
    "going_with going_for dropping cutting killing moving switching renaming replacing removing adding keeping "
    "skipping "
    "closing raising postponing cancelling canceling sticking_with staying_with staying_on merging splitting booking "
    "hiring buying selling starting_with ditching scrapping doing taking using adopting swapping retiring"
)
_NO_SUBJECT_OF = (
    "is are was were makes make takes would seems costs helps means can will could might feels sounds sucks did does "
    "has hurts leads causes broke breaks"
)
_DONE = (
    "booked swapped renamed signed hired ordered reserved cancelled canceled scrapped postponed dropped moved switched "
    "replaced commissioned closed raised lowered pushed axed killed shelved merged bought"
)
_OBJECT = (
    r"(?=(?:the|our|my|an?|all|both|up|off|to|with|for|from|back)\b (?!date\b|work\b|sleep\b)|[A-Z\d]"
    r"|[\w'-]+(?: [\w'-]+){0,3} (?:to|from|with|by|for|until|at)\b)"
)
_NO_CHOICE = (
    "see be need have discuss talk look find_out find know let get get_back wait think try probably maybe likely "
    "never not "
    "hear meet ask check come arrive regret miss lose forget remember continue still also just soon"
)
_PRESENT = (
    "build rent print split leave buy hire paint cut move merge outsource rename postpone cancel replace switch_to"
    " limit ban open close start end sell publish license write"
)
_PASSING = (
    "fine great late hard fun nice ok okay sad interesting down unavailable there back able happy long good better"
)
DECISIONS: tuple[Wording, ...] = (
    (
        SEED_DECISION,
        "decided chose chosen selected picked settled opted concluded resolved committed went gone",
        rf"{WE}{HOW} {any_of(_CHOSEN)}\b|^(?:decided|chose|selected|went with) ",
    ),
    (SEED_DECISION, "agreed", rf"{WE}{HOW} agreed (?:to|on|upon|that)\b"),
    (
        SEED_DECISION,
        "decision decided resolution",
        (
            r"^(?:final )?(?:decision|decided|resolution) ?:|\b(?:our|my|the) (?:final )?decision is\b"
            r"|\bmade (?:up (?:my|our) minds?|(?:the|a|our) (?:final )?decision)\b|, (?:decided|it's decided"
            r"|that's decided)$|^it is decided that"
        ),
    ),
    (
        SURE,
        "will i'll we'll going let's lets let gonna won't",
        (
            rf"(?:{_NO_TASK}{WE}(?:'ll| will| (?:are|am) going to|'re going to|'m going to| won't| (?:are|am) not "
            rf"going to|'re not going to"
            rf"| aren't going to|'m not going to)|(?:^|[,:] ?)let'?s|^let us)"
            rf"(?: (?:not|just|now|all|also|only|please|then|rather|be))* {any_of(_CHOOSE)}\b"
            r"(?! (?:a look|it a try|in touch|back|sure)\b)"
        ),
    ),
    (SURE, "it", r"^[\w.+#-]+(?: [\w.+#-]+)? it is(?:,| then| for|$)"),
    (SURE, "using will we'll i'll", rf"{WE}(?:'ll| will) be (?:using|{any_of(_CHOOSING)})\b"),
    (SURE, "changed", rf"{WE}{HOW} changed (?:our|my) minds?\b.*\b(?:use|go with|take|will)\b"),
    (
        SURE,
        (
            "going switching moving migrating replacing dropping adopting sticking staying rewriting taking "
            "settling choosing "
            "retiring abandoning ditching"
        ),
        rf"{WE}(?:'re|'m| are| am| is)(?: (?:now|not|all|definitely))* {any_of(_CHOOSING)}\b",
    ),
    (
        SURE,
        "instead",
        (
            rf"{WE}(?:'re|'m| are| am)? (?:now )?(?:using|use|take) .*\binstead\b|\binstead of [\w "
            rf".-]{{2,40}}?,? (?:we|i|let's)(?:'ll|'re| will| are)? \w+"
        ),
    ),
    (SURE, "using", rf"{WE}(?:'re| are|'m| am)(?: not|n't) using \w"),
    (
        SURE,
        "move switch migrate moved switched migrated replaced",
        (
            rf"{WE}(?:'ve| have)?(?: now| all)? (?:move|switch|migrate)d?(?: (?!it\b|to\b)\w+){{0,4}} (?:from|away "
            rf"from)\b"
            rf"|{WE}(?:'ve| have)? replaced \w.* (?:with|by)\b"
        ),
    ),
    (SURE, "ruled rejected discarded", rf"{WE}{HOW} (?:ruled out|rejected|discarded)\b"),
    (
        SURE,
        "chosen selected replaced",
        (
            r"\b(?:was|were|has been|have been|is being|is|are|gets|get) (?:chosen|selected) (?:as|for|by "
            r"us)\b|\b(?:gets?|is|was|will be|has been) replaced (?:by|with)\b"
        ),
    ),
    (
        SURE,
        "replace replaces",
        r"^(?![^,;]* (?:to|is|that|which|who) replace)[\w' -]{2,40} (?:will )?replaces? (?:the |our )?\w",
    ),
    (
        SEED_DECISION,
        "chose chosen decided selected picked went",
        rf"{OTHER}(?: (?:has|have|had|all|also|finally|just|already|then))* (?:{any_of(_CHOSEN)})\b",
    ),
    (
        SURE,
        "-ing",
        (
            rf"(?:^|(?<=[ ,:-]))we(?:'re| are|'ll be| will be| won't be)(?: (?:now|not|all|definitely|also|only))* "
            rf"(?!{any_of(_UNDERWAY)}\b)[a-z]{{2,}}ing\b(?= \w)"
        ),
    ),
    (
        SURE,
        "-ing",
        rf"^{any_of(_GERUNDS)}\b (?!(?:[\w'-]+ ){{0,6}}?{any_of(_NO_SUBJECT_OF)}\b)\w",
    ),
    (
        SURE,
        "let's",
        (
            r"(?:^|[,:] ?)let's do (?!it\b|that\b|this\b|so\b|a\b|an\b|some\b|the (?!\w+ (?:with|on|in|at|by|before"
            r"|after|for)\b)|another\b|more\b)\w"
        ),
    ),
    (SURE, "go proceed", r"^(?:go(?: ahead)?|proceed) with (?!it\b|that\b|this\b|the flow\b|your\b)\w"),
    (SURE, "going", rf"^going to {any_of(_CHOOSE)} (?!bed\b|sleep\b)\w"),
    (SURE, "ended", rf"(?:^|{WE}{HOW} )ended up (?:\w+ing|with)\b"),
    (
        SURE,
        _DONE,
        (
            rf"(?:^|(?<=[ ,:-])we(?:'ve| have| all| also| just| now| finally| already)* "
            rf"|^we(?:'ve| have| all| also| just| now| finally| already)* ){any_of(_DONE)} {_OBJECT}"
        ),
    ),
    (
        SURE,
        "booked hired signed ordered bought",
        rf"^i(?:'ve| have| just| finally)* {any_of('booked hired signed ordered')} \w",
    ),
    (
        SURE,
        "will gets moves goes takes",
        (
            rf"^{THING}(?:will (?:be (?!{any_of(_PASSING)}\b)(?:{AMOUNT}|held|made|built|written|shot|printed|served)\b"
            rf"|(?:get|do|use|go to|move|take place|take over|run on|switch|stay|return|show|support|start"
            rf"|include|contain|open|close|send)\b)"
            rf"|gets? (?:built|painted|printed|booked|moved|cut|dropped|replaced|renamed|merged|split|removed"
            rf"|rewritten|an? new|its own)\b"
            rf"|moves? (?:from|to|into)\b|goes? (?:into|to|out on|live)\b|takes? over (?:the|our|all|from)\b) ?\w"
        ),
    ),
    (SURE, "no", r"^no [\w.+#-]+(?: [\w.+#-]+){0,3} (?:after all|any ?more|this (?:year|time|season))\b"),
    (
        SURE,
        "take drop keep skip stick stay start go",
        (
            r"(?:^|(?<=[ ,:-]))we (?:now )?(?:take|go with|go for|stick with|stick to|stay with|stay on|drop|skip"
            r"|start with|keep) (?!it\b|in\b|that\b|this\b|\w+ing\b|a look|care|turns?|notes?\b|pride\b)\w"
        ),
    ),
    (
        SURE,
        "will we'll going",
        (
            rf"(?:^|(?<=[,:] ))we(?:'ll| will| are going to|'re going to|'ll all) (?:\w+ly "
            rf")?(?!{any_of(_NO_CHOICE)}\b)[a-z]+ \w"
        ),
    ),
    (
        SURE,
        "we",
        (
            rf"(?:^|(?<=[,:] ))we (?:now )?(?:{any_of(_PRESENT)})(?! (?:it|that|this|them)(?:[,. ]|$)) (?!to\b)\w"
            r"(?!.*\b(?:a|per|every|each) (?:day|week|month|year|hour)\b)"
        ),
    ),
    (
        SURE,
        "from",
        (
            r"^(?!.*\b(?:your?|me|please|always|never)\b)(?:from now on,? (?=(?:we|i|the|our|all|every|each|no)\b)"
            r"|.*\b(?:we|is|are|goes|go|will)\b.* from now on\b)"
        ),
    ),
    (SURE, "instead", r"^(?:an? |the )?[\w.+#-]+(?: [\w.+#-]+){0,2} instead of [\w.+#-]+(?: [\w.+#-]+){0,2}$"),
    (SURE, "instead", rf"^{THING}(?:now )?(?!was\b|were\b|is\b|are\b)[a-z]+s? [\w ]*\binstead of\b"),
    (
        SURE,
        "it it's",
        r"(?:^|[,:] )(?:the |an? )?[\w.+#-]+(?: [\w.+#-]+)? it is(?:,? then)?$|^it's (?:the )?[\w ]{2,30} then$",
    ),
    (SURE, "final decided settled", r", (?:final|period|settled|end of (?:story|discussion))$"),
    (
        SURE,
        "approved confirmed signed",
        (
            r"^(?:the|our|my) [\w ]{2,30}? (?:has |have )?(?:approved|confirmed|signed off on|agreed to) (?:the|our"
            r"|my|an?)\b"
        ),
    ),
    (SURE, "scrapped cancelled canceled renamed", r"^i(?:'ve)? (?:scrapped|cancell?ed|renamed) \w"),
    (SURE, "will", r"^(?:our|the|my) (?:[\w'-]+ ){1,4}?will be (?P<value>[\w.'-]+)(?: [\w.'-]+)?$"),
    (
        SURE,
        "going",
        (
            r"^(?P<name>[\w.'-]+) (?:is|are) going to (?:direct|lead|build|write|draw|play|run|do|take over|host"
            r"|design|make) \w"
        ),
    ),
    (
        SURE,
        "out off",
        (
            r"^(?:the |our )?[\w.+-]+(?: [\w.+-]+)? (?:is|are) (?:out|off), (?:\w+ )?(?:we|i|let's|[\w.+-]+ (?:is"
            r"|are) in)\b"
        ),
    ),
)
