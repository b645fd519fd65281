"""From figures to a decision: who may be chosen, by which wishes, who is best, how surely, and why."""
