"""Sequence signals of escalation, turn by turn: one small online signal each. Read `signals` first."""
