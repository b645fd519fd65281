"""Tests of the F3 package."""
