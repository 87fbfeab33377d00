"""The functional core: events, policy, memory and risk. No I/O, no clock, no randomness."""
