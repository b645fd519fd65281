"""Image storages: one module for each. The registry lists them."""
