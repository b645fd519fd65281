"""What is known before a run measures anything: kept facts, what things cost, how long it will take."""
