"""Data sets that are read from files of the user's, in a child process that can touch nothing else."""
