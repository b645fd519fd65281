"""Tests of the whole store: its log, its tree, its indexes, and what survives cuts and kills."""
