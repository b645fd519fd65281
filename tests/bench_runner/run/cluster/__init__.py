"""Tests of runs over several machines."""
