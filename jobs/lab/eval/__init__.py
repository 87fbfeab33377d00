"""`turntide lab eval`: how good, on which data."""
