"""Benchmarks, against others on the same machine: `turntide lab bench`."""
