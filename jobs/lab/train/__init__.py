"""`turntide train`: what is learnt from labelled dialogues, and how."""
