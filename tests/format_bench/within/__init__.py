"""Tests of the advice on settings of one format."""
