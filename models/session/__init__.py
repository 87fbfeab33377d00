"""Risk memory and topic memory of one session. Start reading at `fold`."""
