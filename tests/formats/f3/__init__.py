"""Tests of formats/f3."""
