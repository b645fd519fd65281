"""Knowledge from earlier runs: facts that need not be measured again, durations of samples, and the expected duration
of a run."""
