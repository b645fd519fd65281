"""The machine that runs the measurements: facts from /proc and system calls, and checks of whether it is fit to
measure."""
