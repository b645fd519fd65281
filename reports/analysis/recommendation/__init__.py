"""From figures to a decision: eligible variants, preferences, the ranking, its certainty, and the reasons."""
