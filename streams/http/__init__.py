"""Guards before every route: tokens, limits, rates, problems, audit, health."""
