"""Word lists of the fact rules: what kind of thing a word names. All in lower case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from models.text.words import word_set

PROGRAMMING_LANGUAGES = word_set(
    "python javascript typescript java kotlin scala rust golang go c c++ c# cpp ruby php perl swift haskell elixir "
    "erlang clojure ocaml f# lua julia r matlab bash powershell sql dart zig cobol fortran lisp scheme objective-c"
)
NATURAL_LANGUAGES = word_set(
    "english german french spanish italian portuguese dutch swedish norwegian danish finnish icelandic polish czech "
    "slovak hungarian romanian bulgarian greek turkish russian ukrainian serbian croatian slovenian estonian latvian "
    "lithuanian arabic hebrew persian farsi hindi urdu bengali punjabi tamil telugu marathi gujarati mandarin "
    "cantonese chinese japanese korean vietnamese thai indonesian malay tagalog filipino swahili amharic yoruba zulu "
    "afrikaans catalan basque galician welsh irish gaelic latin esperanto albanian armenian georgian"
)
DEMONYMS = NATURAL_LANGUAGES - word_set(
    "latin esperanto mandarin cantonese farsi hindi urdu bengali tamil telugu marathi gujarati tagalog swahili "
    "amharic yoruba zulu afrikaans gaelic arabic hebrew malay"
) | word_set(
    "american british scottish australian canadian mexican brazilian argentinian argentine chilean colombian "
    "peruvian venezuelan cuban austrian swiss belgian luxembourgish egyptian moroccan tunisian algerian nigerian "
    "ghanaian kenyan ethiopian somali ugandan tanzanian senegalese indian pakistani bangladeshi nepali sri-lankan "
    "afghan iranian iraqi syrian lebanese jordanian israeli palestinian saudi emirati taiwanese singaporean "
    "malaysian mongolian kazakh maltese cypriot belarusian bosnian macedonian kiwi jamaican"
)
EDITORS = word_set(
    "vim neovim nvim emacs vscode vscodium pycharm intellij webstorm clion goland rider sublime nano helix zed "
    "eclipse xcode notepad++ jupyter spacemacs kakoune textmate cursor atom"
)
OPERATING_SYSTEMS = word_set(
    "linux ubuntu debian fedora arch mint nixos manjaro gentoo opensuse macos osx mac windows freebsd openbsd "
    "chromeos android ios macbook"
)
UNITS = word_set(
    "metric imperial celsius fahrenheit kelvin kilometres kilometers miles kilos kilograms pounds centimetres "
    "centimeters meters metres grams si litres liters"
)
DIETS = word_set(
    "vegan vegetarian pescatarian flexitarian halal kosher keto ketogenic paleo gluten-free dairy-free lactose-free "
    "sugar-free plant-based low-carb low-sodium low-fodmap low-salt raw-vegan omnivore carnivore veggie nut-free"
)
CODING_STYLE = word_set(
    "tabs spaces snake_case camelcase pascalcase kebab-case semicolons pep8 pep-8 prettier ruff oop "
    "immutability tdd docstrings f-strings"
)
RELATIONSHIPS = word_set("wife husband partner spouse girlfriend boyfriend fiance fiancee fiancé fiancée")
_KINDS_OF_PETS = word_set(
    "dog cat parrot hamster rabbit horse pony turtle tortoise snake lizard gecko goldfish guinea-pig budgie "
    "ferret chicken bird fish canary rat mouse bunny cockatiel hedgehog"
)
_DOGS = word_set(
    "retriever labrador poodle beagle collie terrier dachshund corgi husky spaniel bulldog chihuahua pug "
    "greyhound dalmatian rottweiler whippet labradoodle dachsie mutt puppy pup"
)
_CATS = word_set("tabby siamese ragdoll tomcat kitten kitty")
PETS = {
    **{kind: kind for kind in sorted(_KINDS_OF_PETS)},
    **dict.fromkeys(sorted(_DOGS), "dog"),
    **dict.fromkeys(sorted(_CATS), "cat"),
    "bunny": "rabbit",
}
"""What people call their animals → the kind."""
TITLES = word_set(
    "nurse teacher doctor lawyer chef cook architect student pharmacist dentist surgeon vet midwife paramedic pilot "
    "pastor priest monk nun musician writer author journalist editor translator plumber electrician carpenter "
    "mechanic farmer baker butcher barista waiter waitress bartender cashier accountant actuary analyst scientist "
    "researcher professor lecturer tutor librarian historian engineer developer programmer designer consultant "
    "manager freelancer contractor entrepreneur founder ceo cto cfo director producer actor actress dancer singer "
    "photographer videographer filmmaker artist painter sculptor potter illustrator animator tailor hairdresser "
    "barber beautician therapist psychologist psychiatrist counselor counsellor physiotherapist physio nutritionist "
    "dietitian coach trainer referee athlete firefighter soldier sailor captain fisherman judge paralegal attorney "
    "notary clerk secretary receptionist assistant intern apprentice salesperson salesman saleswoman marketer "
    "recruiter realtor broker banker trader auditor economist statistician mathematician physicist chemist biologist "
    "geologist astronomer ecologist botanist zoologist veterinarian gardener landscaper florist jeweller welder "
    "bricklayer roofer surveyor machinist technician operator driver courier trucker postman janitor cleaner "
    "housekeeper nanny caregiver carer homemaker housewife househusband retiree pensioner undergrad undergraduate "
    "postgrad phd postdoc freshman sophomore dev sysadmin admin devops sre dba tester ux blogger youtuber streamer "
    "winemaker brewer beekeeper blacksmith optician optometrist radiologist cardiologist neurologist dermatologist "
    "pediatrician paediatrician anesthetist anaesthetist oncologist gp copywriter locksmith mason glazier decorator "
    "bookkeeper bookseller shopkeeper storekeeper innkeeper zookeeper goalkeeper logistician dispatcher planner "
    "stonemason cooper glassblower falconer sommelier croupier undertaker embalmer bouncer cartographer carer "
    "sound-engineer stagehand rigger crofter shepherd rancher fisher ranger lifeguard bookbinder luthier goldsmith "
    "silversmith seamstress cobbler chiropractor osteopath podiatrist midwife doula orderly pathologist urologist "
    "surgeon prosecutor barrister solicitor legislator diplomat ambassador mayor councillor priest imam rabbi deacon "
    "minister vicar chaplain steward stewardess attendant navigator controller dispatcher signaller conductor cabbie "
    "courier stevedore docker longshoreman miner driller foreman groundskeeper agronomist botanist archaeologist "
    "anthropologist sociologist linguist philosopher theologian interpreter"
)
NO_TITLES = word_set(
    "fan lover beginner newbie person member user customer newcomer learner sucker believer reader number other loser "
    "winner mother father brother sister daughter sleeper eater drinker smoker speaker owner parent vegetarian hater "
    "gamer hiker runner swimmer climber cyclist biker player rider walker supporter follower subscriber introvert "
    "extrovert minimalist perfectionist pessimist optimist realist feminist disaster matter killer leftover stickler "
    "foodie bit little morning night guy man woman girl boy human kid mess wreck adult teenager christian muslim "
    "buddhist atheist foreigner stranger outsider tourist visitor helper keeper tester-out completist hoarder watcher "
    "listener thinker worrier planner-ahead idiot fool failure burden hypocrite genius noob hobbyist amateur pisces "
    "taurus gemini cancer libra scorpio sagittarius capricorn aquarius pescatarian vegan celiac coeliac diabetic "
    "prisoner spender riser bloomer cousin virgo leo aries libertarian socialist humanitarian ant rather"
)
MEDICAL = word_set(
    "diabetes asthma epilepsy migraine migraines adhd add autism depression anxiety arthritis hypertension "
    "hypothyroidism hyperthyroidism celiac coeliac crohn's ibs gerd eczema psoriasis tinnitus insomnia pcos "
    "endometriosis fibromyalgia anemia anaemia hemophilia haemophilia osteoporosis scoliosis lupus ms parkinson's "
    "dyslexia dyscalculia dyspraxia ocd ptsd bipolar narcolepsy vertigo gout cancer hiv glaucoma sciatica "
    "tendonitis hypoglycemia rosacea colitis reflux apnea apnoea pots eds"
)
TONES = word_set(
    "formal informal casual friendly direct blunt polite professional playful humorous neutral warm serious "
    "formally informally casually directly bluntly politely straightforward sarcastic dry cheerful "
    "encouraging gentle relaxed honest matter-of-fact"
)
LENGTHS = word_set(
    "short brief concise long detailed lengthy thorough terse succinct in-depth longer shorter compact verbose "
    "one-line one-sentence short-and-sweet comprehensive"
)
FORMATS = word_set(
    "bullet_points bullet_point bullets table bulleted_lists numbered_lists numbered_list tables plain_text "
    "markdown prose json lists headings paragraphs yaml csv step-by-step step_by_step full_sentences"
)
"""An underscore stands for a blank."""
FEELINGS = word_set(
    "sorry glad happy sad tired hungry bored busy fine good ok okay great sure ready done back here late new lost "
    "stuck confused curious excited nervous worried afraid scared sick ill cold hot home alone aware unsure able "
    "unable interested looking trying going working thinking wondering planning not so very really just also still "
    "too quite pretty kind sort thankful grateful angry upset mad annoyed frustrated stressed exhausted right wrong "
    "serious kidding joking free available single married divorced engaged widowed retired unemployed pregnant "
    "self-employed based originally currently now always never only using about in on at from with to the a an my "
    "your out off up down over under vegan vegetarian allergic diabetic all both more most less trans gay straight "
    "lesbian bi queer nonbinary non-binary male female left-handed right-handed god"
)
"""What may follow "I'm" and is no name."""
CUES = word_set(
    "i i'm im i've ive i'd i'll my mine me always never please don't dont call forget avoid stop no answer reply "
    "respond keep use delete erase wipe remove ignore allergic vegan vegetarian prefer name name's here we we're "
    "we've favourite favorite timezone based pronouns budget default email emojis skip fan going our give explain "
    "talk write mind make can't cant drop ich mein nenn nenne mi llámame llamame vivo only short be speak address "
    "cite include disregard clear scrap from born pls plz nothing fav fave home metric replies answers "
    "responses spare speaking talking writing reasons every unsure otherwise future rule actually new into keen "
    "mother father mum dad me hobby hobbies turned scratch"
)
"""A message or a sentence without any of these says nothing of its user."""

WORDS: Mapping[str, Iterable[str]] = {
    "LANGUAGE": NATURAL_LANGUAGES,
    "ANY_LANGUAGE": PROGRAMMING_LANGUAGES | NATURAL_LANGUAGES,
    "EDITOR": EDITORS | {"vs", "vs_code"},
    "SYSTEM": OPERATING_SYSTEMS,
    "UNIT": UNITS,
    "DIET": DIETS,
    "PARTNER": RELATIONSHIPS,
    "PET": PETS,
    "MEDICAL": MEDICAL,
    "ILLNESS": MEDICAL - word_set("add pots ms eds"),
    "AGES": [str(age) for age in range(10, 100)],
}
"""Lists that tables name."""
