"""Typed statements out of project talk, by rules. Read `extraction` first."""
