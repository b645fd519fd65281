"""Data sets read from the user's files, in a confined child process."""
