"""`turntide alerts calibrate`: thresholds learnt in shadow mode, from traffic that nobody is paged for."""
