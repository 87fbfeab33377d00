"""What stands before every route: tokens, limits, rates, problems, audit, health."""
