"""Convert text columns to the types of their values, with warnings."""
