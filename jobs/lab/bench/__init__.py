"""Benchmarks, against others on the same machine: `turntide bench`."""
