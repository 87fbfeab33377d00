"""`turntide lab train`: what is learnt from labelled dialogues, and how."""
