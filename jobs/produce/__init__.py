"""`turntide produce`: conversations of many formats, sent to `turns.v1`."""
