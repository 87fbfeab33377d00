"""Commands of those who read memory, put it right, and have it forgotten."""
