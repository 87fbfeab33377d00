"""How fast it is, against others on the same machine: `turntide bench`."""
