"""Keeps what operators watch with in step: the metrics' catalogue, rules, dashboards and runbooks.

Dashboards and the index of the runbooks are made of data here; rules and runbooks are written by hand. Read first:
`board.py`, then `operate/monitoring/boards/overview.py` and `checks.py`.
"""
