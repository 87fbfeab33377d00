"""Ways of saying who one is: name, age, place, where to reach one."""

from __future__ import annotations

from models.language.facts import vocabulary

_NAMED = r"(?-i:[A-Z\u00c0-\u00de])[\w'.&-]*(?:,? (?-i:[A-Z\u00c0-\u00de])[\w'.&-]*){0,3}"
"""Words with a capital: a place, a person, a firm."""
_PLACE = rf"(?:the (?=(?-i:[A-Z])))?{_NAMED}"
_LANGUAGE = "|".join(sorted(vocabulary.NATURAL_LANGUAGES))
_DWELLING = r"(?:flat|apartment|house|place|home|room|studio|cottage|condo|farm|bungalow|loft|townhouse|maisonette)"

WAYS: tuple[tuple[str, str, str], ...] = (
    # Turned round: "Finnish is my first language".
    (
        (
            "name/favourite/favorite/fav/fave/language/tongue/editor/ide/os/system/distro/hometown/town/"
            "birthday/email/mail/address/number"
            "/timezone/zone/employer/job/profession/budget/limit/max/maximum/nickname/pronouns/city/off/day/company"
        ),
        (
            r"(?P<v>(?!(?:this|that|it|he|she|they|here|there|where|what|who|and|but)\b)[^,?]{2,50}?)(?: is| "
            r"are|'s)(?: still| now|"
            r" always| also)? my (?P<n>(?:(?:all-time|absolute|main|primary|preferred|default|usual|go-to|"
            r"native|first|mother|home"
            r"|number one|daily|new) )*(?:name|favourite [\w ]{2,30}|favourite|language(?: of choice)?|tongue|"
            r"editor(?: of choice)?|ide|os"
            r"|operating system|distro|hometown|home town|birthday|e-?mail(?: address)?|address|number|phone "
            r"number|timezone"
            r"|time zone|employer|job|profession|budget|limit|max|maximum|nickname|pronouns|programming "
            r"language|city|day off"
            r"|only day off|only free day|company))(?: and .+| for .+| now| these days| by far| of all time)?$"
        ),
        r"my \g<n> is \g<v>",
    ),
    # Names
    (
        "talking/speaking/chatting",
        rf"you(?:'re| are) (?:talking|speaking|chatting) (?:to|with) (?P<v>{_NAMED})",
        r"my name is \g<v>",
    ),
    (
        "know/known",
        (
            rf"(?:(?:most |all )?(?:people|friends|everyone|everybody|folks|my \w+)(?: all| just| mostly)? "
            rf"know me (?:better )?as"
            rf"|i'm (?:better |mostly |best |usually )?known (?:\w+ \w+ )?as) (?P<v>{_NAMED})"
        ),
        r"people call me \g<v>",
    ),
    ("introduce", rf"i (?:usually |always |normally )?introduce myself as (?P<v>{_NAMED})", r"people call me \g<v>"),
    ("call/address/refer", rf"always (?:call|address|refer to) me(?: as)? (?P<v>{_NAMED})", r"call me \g<v>"),
    ("answer", rf"i answer to (?P<v>{_NAMED})", r"people call me \g<v>"),
    (
        "sign/put",
        (
            rf"(?:sign|put)(?: (?:it|this|that|me|off|my name|the \w+|my \w+|everything)){{0,2}} (?:down "
            rf")?(?:as|with) (?P<v>{_NAMED})"
        ),
        r"call me \g<v>",
    ),
    (
        "speaking/writing/typing/again/here",
        (
            rf"(?:it's|this is)(?: me,?)? (?!(?:not|a|the|my)\b)(?P<v>{_NAMED})(?:,? (?:here|again|speaking|"
            rf"writing|typing|with an? (?-i:[A-Z])\b|by the way)\b.*)"
        ),
        r"my name is \g<v>",
    ),
    ("spelled/spelt", rf"(?:it's|it is) spell?ed (?P<v>{_NAMED}),? my name", r"my name is \g<v>"),
    ("speaking", rf"(?P<v>{_NAMED}) speaking$", r"my name is \g<v>"),
    (
        "named/christened",
        rf"(?:i was (?:named|christened)|my (?:parents|mum|mom|dad) named me) (?P<v>{_NAMED})$",
        r"call me \g<v>",
    ),
    ("name", rf"(?:you can |please |just )?use (?P<v>{_NAMED}) as my name", r"call me \g<v>"),
    ("name", r"the name(?:'s| is) (?P<v>.+)", r"my name is \g<v>"),
    ("mich", r"ich bin (?P<v>(?!der|die)(?-i:[A-Z])\w+) und .+", r"my name is \g<v>"),
    # Age, birthday, pronouns
    (
        "being/hit/reached/turned",
        (
            r"(?:being|i(?:'ve)? (?:just |finally |recently )*(?:hit|reached|turned)(?: the big| the age of)?|"
            r"(?:just )?turned) (?P<v>\d\d)(?!\d|%)"
        ),
        r"I'm \g<v>",
    ),
    (
        "celebrated/celebrating/had",
        r"i(?:'ve|'m)?(?: just)? (?:celebrated|celebrating|had) my (?P<v>\d\d)(?:st|nd|rd|th)(?: birthday)?",
        r"I'm \g<v>",
    ),
    (
        (
            "twenties/thirties/forties/fifties/sixties/seventies/eighties/20s/30s/40s/50s/60s/70s/80s/20's/"
            "30's/40's/50's/60's/70's"
        ),
        (
            r"i'm in my (?P<v>(?:(?:early|mid|late)[ -])?(?:\d0'?s|twenties|thirties|forties|fifties|sixties|"
            r"seventies|eighties))\b"
        ),
        r"my age is \g<v>",
    ),
    (
        "birthday/bday",
        (
            r"(?:i (?:celebrate|have) my (?:birthday|bday)|my (?:birthday|bday) (?:falls|lands|is(?: always| "
            r"coming up)?)) on (?P<v>.+)"
        ),
        r"my birthday is \g<v>",
    ),
    (
        "turn",
        r"i(?:'ll)? turn \d\d on (?P<v>(?:the )?(?:\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec).+)",
        r"my birthday is \g<v>",
    ),
    (
        "refer/she/he/they/ze/xe",
        (
            r"(?:refer to|address|speak of|talk about) me (?:as|with|by|using) (?P<v>(?:she|he|they|ze|xe)(?:/"
            r"\w+)*)\b(?! (?:did|does|is))"
        ),
        r"my pronouns are \g<v>",
    ),
    # Put right
    ("not", r"it's (?P<v>(?P<p>(?-i:[A-Z])\w\w)\w*),? (?:and )?not (?P=p)\w*$", r"my name is \g<v>"),
    (
        "new",
        r"(?:my )?new (?P<n>e-?mail(?: address)?|address|phone(?: number)?|number|job|employer)(?: is|:|'s) (?P<v>.+)",
        r"my \g<n> is \g<v>",
    ),
    (
        "kids/children",
        (
            r"(?:it's|that's|that makes(?: it)?|makes it) (?:now )?(?P<v>(?:\d|two|three|four|five|six) "
            r"(?:kids|children))\b"
        ),
        r"I have \g<v>",
    ),
    (
        "now/days/nowadays",
        rf"i'm (?:now )?(?:at|with) (?P<v>{_NAMED}) (?:now|these days|nowadays)$",
        r"I work at \g<v>",
    ),
    (
        "time/timezone",
        r"(?:i|we)(?:'ve)? (?:just )?moved to (?:the )?(?P<v>[\w/+-]+) (?:time zone|timezone)",
        r"my timezone is \g<v>",
    ),
    # Place
    (
        "home",
        (
            rf"(?:my )?home(?: for (?:me|us)| base)? (?:is|has been|has always been)(?: now| currently)? (?:in "
            rf"|near )?(?P<v>{_PLACE}.*)"
        ),
        r"I live in \g<v>",
    ),
    (
        "home",
        rf"(?:i|we)(?:'ve)? (?:call|called|made|make) (?P<v>{_PLACE}) (?:my |our )?home\b(?P<r>.*)",
        r"I live in \g<v>",
    ),
    ("home", rf"(?:i|we)(?:'ve)? (?:make|made) (?:my|our) home in (?P<v>{_PLACE})", r"I live in \g<v>"),
    ("live", rf"(?P<v>{_PLACE})(?: is|'s) where (?:i|we) (?:now )?live\b", r"I live in \g<v>"),
    (
        "live",
        (
            rf"(?:the (?:city|town|village|place|country|area) )?where (?:i|we) live(?: in)?,? (?:is |in |is "
            rf"called )?(?P<v>{_PLACE})"
        ),
        r"I live in \g<v>",
    ),
    ("here", rf"(?:up |down |over |out |back )?here in (?P<v>{_PLACE})", r"I live in \g<v>"),
    (
        "been",
        (
            rf"(?:i|we)(?:'ve)? been (?:here )?(?:living |based )?(?:here )?in (?P<v>{_PLACE}) (?:since|for|"
            rf"all (?:my|our)|ever)\b"
        ),
        r"I live in \g<v>",
    ),
    (
        "rent/own/bought/flat/apartment/house/place/room/studio/cottage/condo/farm/home",
        (
            rf"(?:i|we)(?:'ve)? (?:just )?(?:rent|own|bought|have|share|renovated|are renting|'re renting)(?: "
            rf"an?| our| my)? (?:[\w-]+ ){{0,3}}?{_DWELLING}"
            rf"(?: \w+)? (?:in|near|outside) (?:(?:the )?(?:centre|center|heart|middle|outskirts|suburbs|north|"
            rf"south|east|west) of )?(?P<v>{_PLACE})"
        ),
        r"I live in \g<v>",
    ),
    (
        "resident/local/citizen",
        rf"i'm an? (?:proud |long-time )?(?P<v>{_PLACE}) (?:resident|local)\b",
        r"I live in \g<v>",
    ),
    ("resident", rf"i'm a resident of (?P<v>{_PLACE})", r"I live in \g<v>"),
    ("native", rf"i'm an? (?P<v>(?!native)(?!(?:{_LANGUAGE})\b){_PLACE}) native\b(?! speaker)", r"I'm from \g<v>"),
    ("based", rf"i'm (?P<v>{_PLACE})-based\b", r"I live in \g<v>"),
    ("based", r"i'm an? (?P<v>(?-i:[A-Z])\w+)-based (?P<w>.+)", r"I live in \g<v> | I'm a \g<w>"),
    ("settled", rf"we(?:'ve)? settled (?:down )?(?:here )?in (?P<v>{_PLACE})", r"I live in \g<v>"),
    (
        "moved",
        rf"(?P<a>(?:i|we)(?:'ve)?(?: just| recently)?) moved (?:here|over|up|down|out|back) to (?P<v>{_PLACE}.*)",
        r"\g<a> moved to \g<v>",
    ),
    ("stay/reside/dwell", rf"i (?:reside|dwell) (?:in|near) (?P<v>{_PLACE})", r"I live in \g<v>"),
    (
        "born",
        r"(?:i(?:'m| was|'ve been) )?born (?:and|&|n) (?:raised|bred|brought up) in (?P<v>.+)",
        r"I grew up in \g<v>",
    ),
    ("raised/born", rf"(?:i was |i'm )?(?:raised|born) in (?P<v>{_PLACE})", r"I grew up in \g<v>"),
    ("hail", r"i hail from (?P<v>.+)", r"I'm from \g<v>"),
    (
        "childhood/youth",
        rf"i spent (?:my|most of my|all my|much of my)(?: \w+)? (?:childhood|youth) in (?P<v>{_PLACE})",
        r"I grew up in \g<v>",
    ),
    (
        "grew/born/from/raised",
        rf"(?P<v>{_PLACE})(?: is|'s) where (?:i (?:grew up|was born|was raised|come from)|i'm from)",
        r"I grew up in \g<v>",
    ),
    ("roots", rf"my roots are in (?P<v>{_PLACE})", r"I'm from \g<v>"),
    # Where to reach
    (
        "post/mail/letters/parcels/packages/deliveries/ship/send/deliver",
        (
            r"(?:(?:post|mail|letters|parcels|packages|deliver(?:y|ies))(?: for (?:me|us))? (?:goes?|should "
            r"go|can go|has to go|comes?|is sent) to"
            r"|(?:ship|send|deliver|post) (?:it|them|this|everything) to (?:me at|my (?:place|home|flat|house|"
            r"address|door)),?(?: at)?) (?P<v>\d.+)"
        ),
        r"my address is \g<v>",
    ),
    (
        "street/road/lane/avenue/row/st/rd/ave/drive/close/way/square",
        r"(?:i'm|we're|you(?:'ll| can)? find me) at (?P<v>\d+\w? (?-i:[A-Z]).+)",
        r"my address is \g<v>",
    ),
)
"""Words of which one must be there, the clause, and what it says plainly."""
