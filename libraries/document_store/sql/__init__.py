"""SQL over a store's documents: `SELECT ... FROM docs`, whose columns are the paths of fields.

`libraries.document_queries.sql` translates SQL to plans of the query language. For this, `fields` finds the fields of
the store and their types. Queries that plans cannot express go to DuckDB (`typing` and `duckdb_way`), which gets the
fields as Arrow columns. `answering` chooses between plan and DuckDB.
"""
