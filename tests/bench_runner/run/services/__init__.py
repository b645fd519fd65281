"""Tests of measured services: started, watched, and ended with the run."""
