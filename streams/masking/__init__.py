"""Secrets, and personal data where it is asked for: found in words, and replaced by their kind."""
