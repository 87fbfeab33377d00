"""Sizing for a number of turns a day: partitions, workers, memory, disk and money, from measured costs of a turn."""
