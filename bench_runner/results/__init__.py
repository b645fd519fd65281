"""The results of a run: records, the register of figures, statistics over samples. It imports no other part of the
runner, so that reports need nothing else."""
