"""How a run goes: rounds, their order, workers and their launchers, chains, what a resumed run has already."""
