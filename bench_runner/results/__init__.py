"""The results of a run: records, the register of figures, and statistics over samples. This package imports no other
part of the runner, so that reports need nothing else."""
