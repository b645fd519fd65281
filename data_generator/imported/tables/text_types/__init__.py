"""Columns of text become columns of the types that their values have; and the warnings that come of it."""
