"""What earlier runs have measured: facts that need not be measured again, and durations of samples, from which the
duration of a run is estimated."""
