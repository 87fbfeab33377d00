"""Risk of a session: scorer, profile, slope, windows, signals, calibrated probability, modes, alerts."""
