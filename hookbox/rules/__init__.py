"""Floor 1: pure rules. No I/O, no clock, no logging: the same arguments give the same answer."""
