"""Memory as tools of the Model Context Protocol."""
