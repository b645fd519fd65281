"""Tables of a data warehouse, whose rows describe the queries that the warehouse has run."""
