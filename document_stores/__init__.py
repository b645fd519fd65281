"""How documents lie: one module for each store. The registry is the only list of them."""
