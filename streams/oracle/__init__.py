"""Oracles: replays of the logs by the pure folds, and what the roles left held against them."""
