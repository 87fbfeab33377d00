"""Whether a session escalates: scorer, profile, slope, windows, signals, alerts."""
