"""The machine that is measured on: facts from /proc and system calls, and whether it is fit to measure."""
