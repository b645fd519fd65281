"""Tests of data_generator/imported/images."""
