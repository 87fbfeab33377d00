"""Ways of saying what one must not or cannot eat, and what one suffers from."""

from __future__ import annotations

from models.language.facts import vocabulary

_DIET = "|".join(sorted(vocabulary.DIETS, key=len, reverse=True)).replace("-", "[ -]")
_SOME = (
    r"(?P<v>(?!(?:it|this|that|these|those|they|he|she|you|which|what|who|there|here|i|we|nothing|"
    r"everything|something|anything)\b)"
    r"[\w' -]{3,40}?(?: (?:and|or) [\w' -]{3,20}?)?)"
)
"""A thing that a clause begins with."""
_MEDICAL = "|".join(
    sorted((word for word in vocabulary.MEDICAL if word not in {"add", "pots", "ms", "eds"}), key=len, reverse=True)
)
_CONDITION = (
    rf"(?P<v>(?:(?:type (?:1|2|one|two)|severe|mild|chronic|bad|really bad) )*(?:{_MEDICAL}|ms|eds|"
    rf"pots|lactose intolerance|high blood pressure|(?:chronic|lower) \w+ ?\w*))"
)
_FOR_GOOD = (
    r"(?: (?:altogether|entirely|completely|for good|years ago|(?:a|two|three|many|\d+) years? ago|in "
    r"(?:19|20)\d\d|since .+|last year|because .+|for (?:health|medical|religious|ethical) reasons))?$"
)

WAYS: tuple[tuple[str, str, str], ...] = (
    # Diet
    (
        "food/meals/everything/eat",
        (
            rf"(?:my food|(?:all )?(?:my|our) meals|everything (?:i eat|for me|we eat|you suggest|you cook for "
            rf"me)|what i eat|food for me) (?:has to|have to|must|needs? to|should|is|are)(?: always| "
            rf"strictly)?(?: be)? (?P<v>{_DIET})\b"
        ),
        r"I'm \g<v>",
    ),
    ("eater", rf"i'm an? (?P<v>{_DIET}) eater", r"I'm \g<v>"),
    (
        "household/family/home/kitchen/house",
        (
            rf"(?:ours is|we(?:'re| are| run| keep| have)|i (?:run|keep|have)) an? (?:strict(?:ly)? "
            rf")?(?P<v>{_DIET}) (?:household|family|home|kitchen|house)"
        ),
        r"I'm \g<v>",
    ),
    (
        "meat/fish/flesh",
        (
            r"i(?:'ve)? (?:haven't|not|never) (?:eaten|touched|had) (?P<v>meat|red meat|fish|dairy|pork|"
            r"gluten|alcohol|sugar)\b.*"
        ),
        r"I don't eat \g<v>",
    ),
    # Allergies
    (
        "makes/make",
        (
            rf"{_SOME} makes? (?:my (?:throat|lips|face|tongue|eyes|skin|mouth|airways) (?:swell|itch|close|"
            rf"burn|puff)|me (?:break out|swell|sneeze|itch|wheeze|come out in))\b.*"
        ),
        r"I'm allergic to \g<v>",
    ),
    (
        "hives/rash/rashes/reaction/anaphylaxis",
        (
            rf"{_SOME} gives? me (?:an? )?(?:hives|(?:bad |nasty |terrible |awful )?rash(?:es)?|an allergic "
            rf"reaction|anaphyla\w+)\b.*"
        ),
        r"I'm allergic to \g<v>",
    ),
    (
        "hives/rash/rashes",
        (
            r"i (?:get|break out in|come out in) (?:an? )?(?:\w+ )?(?:hives|rash(?:es)?) (?:from|with|when i "
            r"(?:eat|touch|have)|if i (?:eat|touch|have)|after|off) (?P<v>.+)"
        ),
        r"I'm allergic to \g<v>",
    ),
    (
        "kill/killed/anaphylactic/anaphylaxis/shock/hospital/er",
        (
            rf"{_SOME} (?:(?:sends?|puts?|lands?) me (?:straight )?(?:to|in|into) (?:the )?(?:er|hospital|a&e|"
            rf"anaphyla\w+|shock)|(?:could|can|would|will|might|nearly|almost) (?:literally )?kill(?:ed)? "
            rf"me)\b(?!.*(?:laugh|lol|haha)).*"
        ),
        r"I'm allergic to \g<v>",
    ),
    (
        "react/reaction",
        (
            r"i(?:'ve)? (?:react(?:ed)?|(?:have|had|get) (?:an? )?(?:\w+ )?(?:allergic )?reactions?) "
            r"(?:(?:very |really |so )?(?:badly|severely|strongly) )?(?:to|from) (?P<v>.+)"
        ),
        r"I'm allergic to \g<v>",
    ),
    (
        "epipen/epi",
        (
            r"i (?:carry|have|need|keep)(?: with me)? an epi-?pen (?:for|because of|due to) (?:my )?(?P<v>[\w "
            r"]+?)(?: allergy)?$"
        ),
        r"I'm allergic to \g<v>",
    ),
    ("anaphylactic/hypersensitive", r"i'm (?:anaphylactic|hypersensitive) to (?P<v>.+)", r"I'm allergic to \g<v>"),
    # What one avoids
    ("agree", rf"{_SOME} (?:doesn't|don't) (?:\w+ )?agree with (?:me|my stomach)\b.*", r"I can't eat \g<v>"),
    (
        "upset/upsets/stomach/gut/tummy/digestion/insides/ill/bloated/nauseous/heartburn/cramps/migraines/throw",
        (
            rf"{_SOME} (?:upsets? my (?:stomach|gut|tummy)|(?:wrecks?|ruins?|mess(?:es)? (?:up |with )?) ?my "
            rf"(?:stomach|gut|digestion|insides)|makes? me (?:ill|bloated|throw up|nauseous)|gives? me "
            rf"(?:heartburn|cramps|migraines|stomach ?aches?|bad cramps))\b.*"
        ),
        r"I can't eat \g<v>",
    ),
    (
        "table/limits/go/forbidden/option/question",
        (
            rf"(?!(?:weekend|morning|evening|afternoon|night|\w+day)){_SOME} (?:is|are)(?: all| strictly| "
            rf"completely)* (?:off the table|off[- ]limits|a no-go|forbidden|not an option|out of the "
            rf"question)(?: for (?:me|us)\b.*| for (?:\w+ )?reasons.*)"
        ),
        r"I can't eat \g<v>",
    ),
    (
        "teetotal/teetotaller/teetotaler/sober",
        r"i(?:'m| am|'ve been) (?:an? )?(?:\w+ )?(?:teetotal(?:l?er)?|sober)(?: for .+| since .+|$)",
        r"I don't drink alcohol",
    ),
    ("drink", r"i don't drink$", r"I don't drink alcohol"),
    (
        "clear/away/off",
        r"i (?:have to |must |need to )?(?:stay|keep|steer) (?:off|clear of|away from) (?P<v>[\w ]+)",
        r"I avoid \g<v>",
    ),
    (
        "avoid/cut/stay/skip/limit",
        (
            r"i (?:have to|must|need to|should|always) (?:avoid|cut out|stay off|skip|limit|watch) "
            r"(?P<v>(?:all )?(?:gluten|dairy|alcohol|caffeine|sugar|meat|pork|nuts|shellfish|eggs|lactose|"
            r"wheat|beef|fish|soy|seafood|coffee|salt|carbs|grapefruit|sodium|spicy food|fried food|lactose|"
            r"fructose|legumes|onions?|garlic)\b.*)"
        ),
        r"I avoid \g<v>",
    ),
    (
        "told/advised/ordered/wants/doctor/doctor's/gp/dietitian",
        (
            r"(?:my|the) (?:doctor|gp|dietitian|nutritionist|cardiologist|consultant|specialist|"
            r"dentist)(?:'s)? (?:has )?(?:told|advised|ordered|wants|asked|banned|warned) me (?:to (?:avoid|"
            r"stay off|cut out|stay away from|give up|stop eating|limit|keep off)|off|from(?: eating| "
            r"drinking)?|against(?: eating| drinking)?) (?P<v>.+)"
        ),
        r"I avoid \g<v>",
    ),
    (
        "off",
        (
            r"i'm off (?P<v>alcohol|sugar|caffeine|coffee|dairy|gluten|meat|salt|booze|carbs|cigarettes|bread|"
            r"wheat|sweets)\b"
        ),
        r"I avoid \g<v>",
    ),
    (
        "allowed/supposed",
        (
            r"i'm not (?:allowed|supposed|meant|permitted)(?: to (?:have|eat|drink|take|touch))?(?: any)? "
            r"(?P<v>(?!to\b).+)"
        ),
        r"I'm not allowed to eat \g<v>",
    ),
    (
        "gave/given/give/cut/quit/swore/sworn/went",
        (
            rf"i(?:'ve)? (?:had to )?(?:gave up|given up|give up|cut out|swore off|sworn off|went off|quit) "
            rf"(?P<v>[\w-]+(?: [\w-]+)?){_FOR_GOOD}"
        ),
        r"I stopped \g<v>",
    ),
    (
        "stomach/handle/digest/process/tolerate",
        (
            r"my (?:body|stomach|gut|system) (?:can't|doesn't|won't) (?:\w+ )?(?:handle|digest|process|"
            r"tolerate|take|like) (?P<v>.+)"
        ),
        r"I can't eat \g<v>",
    ),
    # Health
    (
        "/".join(sorted(w for w in vocabulary.MEDICAL if w != "add")),
        (
            rf"i(?:'ve)? (?:had|been living with|lived with|been dealing with) {_CONDITION}\b(?: (?:since|for|"
            rf"all my|as long)\b.*|$)"
        ),
        r"I have \g<v>",
    ),
    (
        "struggle/prone/deal/suffering/battle/living/manage/managing/coping/live/fight",
        (
            rf"(?:i(?:'m)? (?:struggle with|prone to|deal with|suffering from|battle|living with|live with|"
            rf"manage|managing|coping with|susceptible to|struggling with)|living with|suffering from) (?:my "
            rf")?{_CONDITION}\b"
        ),
        r"I have \g<v>",
    ),
    (
        "take/taking/inject",
        rf"i(?:'m)? (?:take|taking|inject|on|use) (?:\w+ ){{1,3}}(?:for|against|because of) (?:my )?{_CONDITION}\b",
        r"I have \g<v>",
    ),
    ("flares/flare/acts/worse", rf"my {_CONDITION} (?:flares? up|acts? up|gets? (?:bad|worse))", r"I have \g<v>"),
    ("runs/family", rf"{_CONDITION} runs in my family and i have it", r"I have \g<v>"),
)
"""Words of which one must be there, the clause, and what it says plainly."""
