"""SQL over a store's documents: `SELECT ... FROM docs`, whose columns are the paths of fields.

`libraries.document_queries.sql` translates SQL to plans of the query language, with what `fields` knows of the store.
What plans cannot express goes to DuckDB (`typing` and `duckdb_way`), which gets the fields as Arrow columns.
`answering` chooses.
"""
