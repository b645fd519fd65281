"""Tests of the two ways of reading."""
