"""What a number of turns a day takes: partitions, workers, memory, disk and money, from measured costs of a turn."""
