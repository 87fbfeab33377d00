"""Building blocks of the states of all kinds of entities: parts, vectors, due times, bounds."""
