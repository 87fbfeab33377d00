"""Measurements and trials: benchmarks, evaluations, training, fault injection, soak."""
