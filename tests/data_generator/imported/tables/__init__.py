"""Tests of data_generator/imported/tables."""
