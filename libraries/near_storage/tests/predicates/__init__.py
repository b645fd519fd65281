"""Tests of near storage."""
