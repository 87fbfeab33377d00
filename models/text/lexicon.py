"""Words by which the rule scorer knows a risky matter: names of categories and means, no how-to of any kind.

A weight is the risk a word gives to a turn that plainly asks for the thing; the scorer lowers it by context.
"""

from __future__ import annotations

from collections.abc import Iterable

from models.text.words import word_set

CATEGORIES: dict[str, dict[float, str]] = {
    "weapons": {
        0.6: "bomb explosive grenade detonator molotov landmine silencer bioweapon anthrax ricin sarin napalm thermite "
        "nitroglycerin dynamite",
        0.4: "weapon poison toxin explosion firearm ammunition ammo gunpowder cyanide arsenic chloroform uranium",
        0.25: "gun rifle pistol knife explode bullet sniper",
    },
    "hacking": {
        0.6: "malware ransomware keylogger rootkit botnet spyware ddos",
        0.4: "hack exploit phish trojan backdoor jailbreak cyberattack wiretap",
        0.25: "bypass virus spoof impersonate deface breach unauthorized unauthorised",
    },
    "drugs": {
        0.55: "meth methamphetamine fentanyl heroin",
        0.4: "cocaine mdma lsd ketamine narcotic opium",
        0.25: "drug overdose marijuana cannabis steroid psilocybin addict",
    },
    "self_harm": {0.7: "suicide suicidal", 0.3: "overdose anorexia starve"},
    "violence": {
        0.55: "murder strangle torture kidnap massacre behead dismember genocide assassinate hitman arson molest",
        0.5: "rape",
        0.4: "kill stab assault stalk blackmail terrorist terrorism violent extort robbery hostage lynch",
        0.25: "attack shoot hurt threaten harass revenge punch choke drown bully riot",
    },
    "hate": {
        0.4: "nazi supremacist supremacy racist racism sexist jihad extremist propaganda disinformation",
        0.2: "hateful slur hitler",
    },
    "fraud": {
        0.5: "counterfeit launder embezzle ponzi burgle heist pickpocket",
        0.4: "steal scam fraud forge shoplift smuggle bribe burglary rob cartel vandalize vandalise plagiarize",
        0.25: "stolen fake pirate theft illegal illegally manipulate deceive crime criminal",
    },
    "sexual": {0.35: "porn nude prostitute", 0.15: "sexual sexy"},
    "evasion": {0.4: "untraceable undetected undetectable", 0.3: "evade"},
    "minors": {0.9: "csam pedophile", 0.35: "underage"},
}

PHRASES: dict[str, float] = {
    r"(?:kill|hurt|cut|harm|hang)(?:ing)? (?:myself|yourself|himself|herself)": 0.75,
    r"end(?:ing)? (?:(?:my|his|her) (?:own )?life|it all)": 0.5,
    r"self[- ]harm": 0.6,
    r"child (?:porn\w*|abuse material)": 0.95,
    r"(?:nerve agent|dirty bomb|pipe bomb|mass shooting)": 0.7,
    r"(?:sql injection|brute force|zero[- ]day|social engineering)": 0.35,
    r"(?:identity theft|fake id|credit card numbers?|someone else's (?:password|account|identity))": 0.45,
    r"without (?:getting|being) (?:caught|traced|detected|noticed)": 0.45,
    r"(?:avoid detection|get away with|leave no trace|cover (?:my|our|your) tracks)": 0.45,
    r"(?:hate speech|ethnic cleansing|human trafficking)": 0.5,
}
PHRASE_TRIGGERS = word_set(
    "myself yourself himself herself end ending self self-harm harm child agent dirty pipe mass sql brute zero "
    "social identity id card else's caught traced detected noticed detection away trace tracks hate ethnic "
    "trafficking"
)

HARMLESS: tuple[str, ...] = (
    (
        r"kill(?:s|ed|ing)? (?:the |a |that |this |some |my |all |off |-9 )*(?:process\w*|time|task|job|container"
        r"|server|tab|thread|program|pid|lights?|switch|engine|weeds?|bacteria|germs|mold|mould|mosquito\w*|vibe|mood)"
    ),
    r"kill two birds",
    r"(?:life|growth|travel|kitchen|productivity)[- ]?hack\w*",
    r"hack(?:er)? (?:news|day|night)|hackerrank",
    (
        r"shoot(?:ing|s)? (?:a |an |the |some |me |you |us |for |our |my )*(?:photos?|pictures?|video|film|movie"
        r"|hoops|email|message|note|portrait\w*|the moon|stars?)"
    ),
    r"(?:photo|video|film) ?shoot\w*|shooting star|trouble ?shoot\w*",
    r"(?:bath|photo|cherry|seed) bombs?",
    r"(?:bypass (?:surgery|valve|road|operation))|(?:gastric|heart|cardiac|coronary) bypass",
    r"(?:heart|panic|anxiety|asthma) attacks?",
    r"steal(?:s|ing)? (?:the show|a base|bases|home|the spotlight)",
    (
        r"exploit(?:s|ed|ing)? (?:the |this |a |our )*"
        r"(?:opportunit\w+|advantage|symmetry|structure|sparsity|parallelism|locality|fact)"
    ),
    r"poison (?:ivy|oak)|food poison\w*|(?:knife|knives) (?:skills?|set|block|sharpener)",
    r"(?:kitchen|chef's|paring|bread|butter) kni(?:fe|ves)",
    r"anti-?virus|corona ?virus|flu virus|virus(?:es)? (?:spread|mutate|infection)",
    r"fake (?:plants?|fur|tan|leather|smile|flowers?)|pirate (?:ship|costume|party|movie|bay cruise)",
    r"(?:glue|nail|staple|heat|caulk(?:ing)?) guns?|(?:prescription|generic) drugs?|drug ?store",
    r"hurt(?:s|ing)? (?:my )?(?:feelings|back|knee|foot|head|a lot)",
)
"""Everyday senses of the words above; taken out before a turn is scored."""

_ENDINGS = ("", "s", "es", "ed", "ing", "er", "ers")


def _inflections(word: str) -> Iterable[str]:
    yield from (word + ending for ending in _ENDINGS)
    if word.endswith("e"):
        yield from (word[:-1] + ending for ending in ("ing", "ed", "er", "ers"))
    elif word.endswith("y"):
        yield from (word[:-1] + ending for ending in ("ies", "ied"))
    elif word[-1] in "bgnpt":
        yield from (word + word[-1] + ending for ending in ("ing", "ed", "er", "ers"))


WEIGHTS: dict[str, float] = {
    form: weight
    for tiers in CATEGORIES.values()
    for weight, words in sorted(tiers.items())
    for word in words.split()
    for form in _inflections(word)
}
"""Every inflected form and its weight."""
