"""Tests of queries over documents: plans, their meaning, and the ways of execution."""
