"""Tests of the store as a whole: its log, its tree, its indexes, and what survives cuts and kills."""
