"""Whether a conversation escalates, seen turn by turn: one small online signal each. Read `signals` first."""
