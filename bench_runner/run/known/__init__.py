"""Knowledge before a run measures anything: kept facts, costs, expected duration."""
