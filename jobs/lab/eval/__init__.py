"""`turntide eval`: how good, on which data."""
