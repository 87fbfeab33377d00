"""Messages as clients and other tools write them, made turns: pure functions that every way in uses."""
