"""Tests of operations on tables in partitions."""
