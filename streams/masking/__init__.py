"""Personal data in words that are kept: found, and replaced by its kind."""
