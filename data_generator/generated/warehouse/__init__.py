"""Tables of a data warehouse: what it knows of its own queries."""
