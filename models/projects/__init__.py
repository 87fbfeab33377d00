"""What `models.project` folds a project with: its state, what events do to it, what is told, and what readers see."""
