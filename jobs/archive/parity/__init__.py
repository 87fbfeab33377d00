"""Parity: what the stream says of its state, recomputed in bulk from the archive's turns. Read `command`, then `turns`.

`turns` tells which turns each session counted; from these `profiles`, `windows` and `memories` count again, in SQL,
one partition of `turns.v1` after the other. `fold` makes every event again with the stream's own pure functions. Equal
means equal: counts, ranges, and sums to the last bit.
"""
