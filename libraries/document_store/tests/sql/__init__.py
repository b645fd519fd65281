"""Tests of SQL over documents."""
