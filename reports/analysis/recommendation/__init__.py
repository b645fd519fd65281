"""Derive a recommendation from the figures of a run: which variants are eligible, how the user's weights rank these
variants, how certain the ranking is, and why a variant is best."""
