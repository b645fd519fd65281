"""How images lie: one module for each storage. The registry is the only list of them."""
