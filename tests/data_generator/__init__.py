"""Tests of data_generator."""
