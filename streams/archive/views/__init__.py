"""The views of the archive.

`definitions` says what they are, `once` how repeats are left out, `published` how they get into the catalog and how a
reader knows that they are there.
"""

from streams.archive.views.definitions import definitions

VIEWS: dict[str, str] = definitions({})
"""Name to query, in the order of creation."""
