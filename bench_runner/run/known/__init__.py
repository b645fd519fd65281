"""What is known before a run measures anything: stored facts, costs, expected duration."""
