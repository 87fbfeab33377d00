"""`turntide lab chaos`: seeded destruction under load, and the proof that nothing was lost or doubled."""
