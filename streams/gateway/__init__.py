"""Turns from clients to `turns.v1`. Nothing is kept here: a request is answered when the broker has what it sent."""
