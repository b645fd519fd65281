"""Tests of format_bench."""
