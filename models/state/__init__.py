"""What the states of all kinds of entities are made of: parts, vectors, due times, bounds."""
