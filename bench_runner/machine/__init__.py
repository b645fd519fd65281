"""The machine that is measured on: what /proc and system calls tell, the environment that a run records, and whether it
is fit to measure.
"""
