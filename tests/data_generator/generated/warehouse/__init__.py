"""Tests of the tables of a data warehouse."""
