"""The tables of a data warehouse."""
