"""What the tool itself costs, and how far it can be believed: benchmarks of the benchmark, which print figures.

They are run by hand or by `make selfbench...`, never by the test suite: machines are noisy.
"""
