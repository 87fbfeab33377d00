"""One module per role: decode, fold, effects."""
