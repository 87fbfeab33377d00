"""The folds of one partition: sessions of `turns.v1`, and users, apps and projects of `commands.v1`."""
