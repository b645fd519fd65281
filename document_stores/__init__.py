"""Document stores: one module for each. The registry is the only list of them."""
