"""`turntide ops replay`: logs folded again, and what the roles left compared with it."""
