"""Queries as SQL: a plan is translated for an engine whose values tell their kinds in its own words."""
