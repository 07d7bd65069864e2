"""A simulation: the flows over the real SQL, in one thread, on a time that only the seed moves."""
