"""Facts about the machine that runs the measurements, read from /proc and by system calls, and checks of whether the
machine is fit to measure."""
