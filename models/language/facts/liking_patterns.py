"""Ways of saying what one likes and what not."""

from __future__ import annotations

_SOME = (
    r"(?P<v>(?!(?:it|this|that|these|those|they|he|she|you|which|what|who|there|here|i|we|nothing|everything|something"
    r"|anything|one|both|your|his|her|their|my|our)\b)[\w' -]{3,40}?(?: and [\w' -]{3,20}?)?)"
)
_FAN = r"lover|enthusiast|fan|buff|nerd|junkie|addict|fanatic|aficionado|geek|freak|fiend|devotee|supporter"
_NO_PERSON = (
    r"(?!(?:morning|night|people|nice|good|bad|shy|kind|busy|private|patient|happy|very|quiet|"
    r"disabled|one|normal|creative|visual|curious|big|sad|strong|real|spiritual|sane|changed|"
    r"different|new|better)\b)"
)
WAYS: tuple[tuple[str, str, str], ...] = (
    # Likings
    (
        "sucker/mad/crazy/nuts/wild/passionate/partial/hooked/big/huge/obsessed/addicted",
        (
            r"(?:i'm|i am) (?:an? )?(?:\w+ly |such an? |total |real |complete |bit of an? |absolute |very |"
            r"pretty )*(?:sucker for|mad (?:about|for)|crazy (?:for|about)|nuts (?:about|for)|wild about"
            r"|passionate about|partial to|hooked on|big on|huge on|big into|obsessed with|addicted to) (?P<v>.+)"
        ),
        r"I love \g<v>",
    ),
    ("enough", r"i (?:can't|can never|could never|never can|cannot) get enough (?:of )?(?P<v>.+)", r"I love \g<v>"),
    (
        "beats/tops",
        r"(?:nothing|there's nothing that) (?:beats|tops) (?P<v>(?!an? good night|the feeling|that|this).+)",
        r"I love \g<v>",
    ),
    (
        "spot/thing/weakness/passion/fondness/obsession",
        (
            r"i(?:'ve)? (?:have|had)?(?: always)?(?: had)? ?an? (?:\w+ )?(?:soft spot|thing|weakness|passion|"
            r"love|fondness|obsession) for (?P<v>.+)"
        ),
        r"I love \g<v>",
    ),
    (
        "loved/liked/enjoyed/adored",
        r"i've (?:always |long )?(?P<w>loved|liked|enjoyed|adored) (?P<v>.+)",
        r"I love \g<v>",
    ),
    (
        "never",
        (
            r"(?:i(?:'ve)? )?never (?:been (?:a (?:big |huge )?fan of|into|keen on|fond of|one for)|(?:much "
            r")?liked|(?:much |really )?cared (?:much )?for|enjoyed|understood the appeal of|got into) "
            r"(?P<v>.+)"
        ),
        r"I don't like \g<v>",
    ),
    (
        "/".join(_FAN.split("|")),
        (
            rf"(?:i'm|being|as) (?:an? )?(?:\w+ly |big |huge |real |total |massive |serious |lifelong |proper |"
            rf"such a |bit of an? |keen |avid |passionate |self-confessed |long-time |die-hard )*(?!(?:an?|fan|"
            rf"huge|big|massive|great)\b)(?P<v>[\w' -]{{3,30}}?) (?:{_FAN})\b(?! (?:of|fiction|art|club|page|"
            rf"base|noise))(?: here| myself)?"
        ),
        r"I love \g<v>",
    ),
    (
        "here",
        rf"(?:an? )?(?:big |huge |massive |lifelong |fellow )*(?P<v>[\w' -]{{3,30}}?) (?:{_FAN}) here$",
        r"I love \g<v>",
    ),
    (
        "passion/hobby/jam/obsession/happy/love/hobbies/passions/loves/pleasures/therapy/pleasure/thing",
        (
            rf"{_SOME} (?:is|are|has always been|have always been|has been)(?: still)? (?:my (?:\w+ "
            rf")?(?:passion|jam|happy place|hobby|great love|first love|obsession|guilty pleasure|therapy|"
            rf"thing|life)|one of my (?:\w+ )?(?:hobbies|passions|favourite \w+|great loves|pleasures|"
            rf"interests))\b.*"
        ),
        r"I love \g<v>",
    ),
    (
        "hobby/hobbies/interests/passions/passion/interest/pastime",
        (
            r"my (?:\w+ )?(?:hobb(?:y|ies)|interests?|passions?|pastimes?) (?:is|are|include|includes)(?: "
            r"mostly| mainly)? (?P<v>(?!not\b|on\b|getting|in \b).+)"
        ),
        r"I love \g<v>",
    ),
    (
        "play",
        (
            r"i play (?:the )?(?P<v>[\w -]{3,24}?)(?: in my (?:free|spare) time| for fun| every \w+| as a "
            r"hobby| on weekends| at weekends| in a (?:band|league|team|orchestra)| twice a week| "
            r"competitively)"
        ),
        r"I love \g<v>",
    ),
    (
        "could",
        (
            r"i could (?:eat|drink|listen to|watch|read|talk about|live on) (?P<v>(?!a horse|an?\b)[\w "
            r"-]{3,40}?) (?:every (?:\w+ )?day|all day|for hours|forever|for ever|daily|at every meal|"
            r"non-?stop|all night)\b.*"
        ),
        r"I love \g<v>",
    ),
    (
        "person",
        (
            rf"i'm (?:more of |very much |definitely |more )?an? {_NO_PERSON}(?P<v>[\w-]+(?: [\w-]+)?) "
            rf"(?:person|kind of person|guy|girl)(?P<r> (?:than|rather than|over) .+|$)"
        ),
        r"I prefer \g<v>",
    ),
    (
        "happiest/happy/happier",
        r"i'm (?:happiest|at my happiest) (?:when (?:i'm )?)?(?P<v>(?:\w+ing)\b.{0,24})",
        r"I love \g<v>",
    ),
    ("happy", rf"{_SOME} (?:always )?makes? me (?:so )?happy(?: every time)?$", r"I love \g<v>"),
    # Dislikes
    (
        "isn't/aren't/never/not",
        (
            rf"{_SOME} (?:isn't|aren't|is not|are not|was never|has never been|have never been|are just "
            rf"not)(?: exactly| at all)? (?:my (?:thing|cup of tea|jam|scene|idea of fun)|for me|something i "
            rf"(?:enjoy|like))\b.*"
        ),
        r"I don't like \g<v>",
    ),
    (
        (
            "bores/bore/disgusts/disgust/annoys/annoy/irritates/irritate/repulses/repels/grosses/gross/"
            "drives/drive/creeps/creep/ick/gag/cringe/shudder/sleep/cold/vomit"
        ),
        (
            rf"{_SOME} (?:(?:bores?|disgusts?|annoys?|irritates?|repulses?|repels?) me\b.*|gross(?:es)? me "
            rf"out.*|creeps? me out.*|drives? me (?:mad|crazy|nuts|up the wall|insane|bonkers).*|gives? me the "
            rf"(?:creeps|ick|shivers).*|makes? me (?:gag|cringe|shudder|sick|want to vomit).*|puts? me to "
            rf"sleep|leaves? me cold)"
        ),
        r"I hate \g<v>",
    ),
    (
        "bear/abide/deal/handle/face",
        (
            r"i (?:can't|could never|cannot) (?:bear|abide|deal with|face|get into|get on with|get behind|be "
            r"doing with) (?P<v>.+)"
        ),
        r"I hate \g<v>",
    ),
    ("without", r"i (?:could|can) (?:happily )?(?:do|live) without (?P<v>.+)", r"I don't like \g<v>"),
    (
        "big/much/keen/fussed",
        (
            r"(?:i'm )?not (?:an? (?=\w+ (?:drinker|eater))|that |so |too |very |super |particularly |"
            r"especially |exactly )?(?:big on|much of an? (?=\w+ (?:person|fan|lover|drinker|eater)\b)|one "
            r"for|keen on|crazy about|mad about|wild about|fussed about|fan of|much for) (?P<v>.+?)(?: "
            r"(?:person|fan|lover|drinker|eater))?$"
        ),
        r"I don't like \g<v>",
    ),
    (
        "peeve/hate",
        (
            r"my (?:biggest |number one |main )?(?:pet )?(?:peeve|hate)(?: is| are|'s) (?P<v>(?!when|people|"
            r"that|if|how)[\w -]{3,40})"
        ),
        r"I hate \g<v>",
    ),
    (
        "time/patience/interest",
        (
            r"i (?:have|have got|got) (?:no|zero|little) (?:time|patience|interest|love|taste) (?:for|in) "
            r"(?P<v>(?!that|this|you|it)[\w -]{3,40})"
        ),
        r"I don't like \g<v>",
    ),
    ("gone/went", r"i(?:'ve)? (?:gone|went) (?:right )?off (?P<v>[\w -]{3,40})", r"I don't like \g<v>"),
    (
        "grown/come",
        r"i(?:'ve)? (?:grown|come|learned|learnt) to (?P<w>love|like|hate|dislike|enjoy) (?P<v>.+)",
        r"I \g<w> \g<v>",
    ),
    (
        "thumbs/loathing/aversion",
        (
            r"i(?:'ve)? (?:have |got )?(?:an? )?(?:strong |deep |real )?(?:aversion to|loathing (?:of|for)|"
            r"hatred (?:of|for)|dislike (?:of|for)) (?P<v>.+)"
        ),
        r"I hate \g<v>",
    ),
)
"""Words of which one must be there, the clause, and what it says plainly."""
