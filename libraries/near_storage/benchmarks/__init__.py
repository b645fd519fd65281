"""Benchmarks of near storage that print figures. Run them by hand, because results vary with the machine."""
