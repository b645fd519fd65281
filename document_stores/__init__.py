"""Document stores. There is one module for each, listed in the registry."""
