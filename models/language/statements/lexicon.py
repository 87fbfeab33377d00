"""Technologies by their slots, words that name a slot or tell a category; from `data/technologies.toml`.

A slot is what one technology takes the place of another in: two databases are rivals, a database and a cache are not.
Names that are ordinary words too ("go", "rest", "express") count only where something is chosen, as all names do.
"""

from __future__ import annotations

from collections.abc import Mapping

from models.text.tables import read_table
from models.text.words import word_set

_GROUPS: dict[str, dict[str, str]] = read_table("technologies")


def _entries(groups: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """From a name as it is written to its slot and its fixed form."""
    entries = {}
    for slot, names in groups.items():
        for entry in names.split():
            name, _, fixed = entry.replace("_", " ").partition("=")
            entries[name] = (slot, fixed or name)
    return entries


TECHNOLOGIES: Mapping[str, tuple[str, str]] = _entries(_GROUPS["slots"])
"""From a name, folded, to its slot and its fixed form: `postgres` is (`database`, `postgresql`)."""
SLOTS: Mapping[str, str] = {name: slot for name, (slot, _) in _entries(_GROUPS["nouns"]).items()}
"""From a noun, folded, to the slot that it names."""
CATEGORIES_OF_SLOTS: Mapping[str, str] = {
    slot: category for category, slots in _GROUPS["category_of_slots"].items() for slot in slots.split("|")
}
CATEGORIES: Mapping[str, str] = {
    word: category for category, words in reversed(_GROUPS["words_of_categories"].items()) for word in words.split()
}
"""From a word, folded, to what it speaks of; of a word in two, the one named first counts."""
AMBIGUOUS = frozenset({"go", "rest", "express", "spring", "render", "swift", "spaces", "tabs", "gin", "phoenix"})
"""Names that are tags only where they were chosen."""
PURPOSES = frozenset(
    slot.replace("_", " ")
    for slot in word_set(
        "database vector_database cache message_queue search_engine monitoring auth_method state_management"
    )
)
"""Slots that a technology of another one can fill: a database serves as a queue, a cache as a database."""
