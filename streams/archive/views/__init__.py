"""The views of the archive.

`definitions` says what they are, `once` how repeats are left out, `published` how they get into the catalog and how a
reader knows that they are there.
"""
