"""Benchmarks of the document store that print figures. Run them by hand, because results vary with the machine."""
