"""Tables of a data warehouse: records of its own queries."""
