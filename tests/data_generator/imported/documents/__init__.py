"""Tests of data_generator/imported/documents."""
