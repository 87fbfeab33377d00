"""`turntide alerts`: what fires, and saying whether it was right."""
