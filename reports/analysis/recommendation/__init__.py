"""Derive a recommendation from figures: eligible variants, preferences, the ranking, its certainty, and reasons."""
