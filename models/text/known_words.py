"""English words by which a respelled one is known again: common ones, the risky ones of the lexicon, usual targets."""

from __future__ import annotations

from itertools import chain

from models.text.keywords import STOP_WORDS
from models.text.lexicon import CATEGORIES
from models.text.words import word_set

ENGLISH_WORDS = word_set(
    # Of the words that say no matter, those that the other languages below do not have.
    "the of and to is are that it you i my your for with how what do does can this have not if would could should "
    "there from they we she his her but by be was were been has had will which who when where why about some any them "
    "then than these those their our it's i'm don't can't i've you're that's what's doesn't isn't didn't into out up "
    "just like get got make know want need tell give think good yes please thanks thank hello because which while "
    "also only at dont cant im ive whats gonna wanna going want using use take let thing things"
)
_SHORT_WORDS = word_set(
    "a am an as at he in me no on or so us go ok hi bad big day end kid man men new old one two way"
)
OTHER_WORDS = word_set(
    # Spanish, Portuguese
    "el los las una unos del que qué por para con más pero como cómo está están soy eres muy también puede puedo "
    "quiero hacer sobre cuando donde porque yo tú mi su sus se le lo al hay este esta esto ese esa de la en um uma os "
    "das não você isso eu meu minha mais são ao na ele ela fazer "
    # French
    "le les des du et est une je tu il elle nous vous ils dans pas ne que qui sur avec mais où sont ce cette ces "
    "mon ma mes votre vos au aux être avoir suis peux très c'est j'ai d'un d'une qu'il l'on n'est "
    # German, Dutch
    "der das den dem ein eine einen einem einer und ist sind ich du er wir ihr nicht mit für auf auch aber wie wenn "
    "dass zu zum zur von vom bei nach über mein meine kann können habe haben hast wird werden sich noch nur oder als "
    "het een van niet voor zijn met maar ook aan bij deze hoe ik je jij wij kan "
    # Italian
    "il gli della delle dei degli di che non sono è come più questo questa mio mia nel nella anche ma io lei lui "
    # Polish, Turkish, Indonesian, Swedish
    "jak nie jest się że czy ale może to na ve bir bu için ne ben yang untuk dengan ini itu tidak bagaimana saya "
    "och att det är inte jag på som hur"
)
_TARGETS = word_set(
    # What is respelled to pass a filter, beside the lexicon.
    "account acid address admin adult agent alcohol amphetamine anarchy antifreeze ass assassin attacker bank beat "
    "bitch black bleach blood blow body bot botox break brew bride burn carbine card carfentanil chemical child "
    "children chlorine cigarette clone cloned club code cook cookie corpse cracker crack crash credit cyber damage "
    "danger dangerous dark dead deadly deal dealer death decode delete destroy device dick die dirty disease "
    "doxing dox drink dynamite elite encrypt escort evil execute exam explosives extremist fatal fertilizer "
    "fertiliser fight filter fire flesh freak fuck fucker fucking fuel fuse gang gas gay ghost girl glock gore "
    "grenades grow guide guideline guidelines hacker hang hash hate hatred hell hide hidden homemade house human "
    "ignore illicit incest infect inject injection insider instruction instructions insult intruder jail jihadist "
    "keylog kidnapper killer knives ladder laundering leak leet lethal lock lover lsd mafia magazine mail master "
    "material mdma mercury method mine missile mistress money mushroom naked nazi neo network nitrate noob nuclear "
    "nudes nudity number obey oil orgasm owned oxide oxycodone panic parent password passwords passwd payload "
    "peroxide pervert phisher phone pill pills pipe piss pistol plan plastic plutonium poisonous police pool porn "
    "porno pornography powder power prison private program prompt racial radical ransom rapist razor recipe recipes "
    "refuse reveal rifle root rule rules safe sadist school secret secrets sell server sex sexual sexually shit "
    "shooter shooting slave smoke sniffer soldier spam spice spy spyware stealth sulfur sulphur surveillance swat "
    "sword synthesis synthesize synthesise system target terror test thief thug tobacco token torment toxic trace "
    "track traffick trafficking train trap uncensored unfilter unfiltered user username vape victim video viruses war "
    "warez water weed wife wire woman women worm wound zombie hello world people person friend love baby girls boys "
    "boy food game play time again cat dog tree car great"
)
KNOWN_WORDS: frozenset[str] = (
    ENGLISH_WORDS
    | STOP_WORDS
    | _SHORT_WORDS
    | _TARGETS
    | frozenset(chain.from_iterable(words.split() for weights in CATEGORIES.values() for words in weights.values()))
)
_SHORTEST_STEM = 3
_INFLECTIONS = ("s", "es", "ed", "d", "er", "r", "ers", "rs", "ing", "ings")


def is_known(word: str) -> bool:
    """Whether a folded word, or what it inflects, is among the known ones.

    >>> is_known("hacking"), is_known("haking")
    (True, False)
    """
    if word in KNOWN_WORDS:
        return True
    if not word.endswith(_INFLECTIONS):
        return False
    for end in _INFLECTIONS:
        if word.endswith(end):
            stem = word.removesuffix(end)
            if len(stem) >= _SHORTEST_STEM and (stem in KNOWN_WORDS or stem + "e" in KNOWN_WORDS):
                return True
    return False
