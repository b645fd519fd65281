"""SQL over a store's documents: `SELECT ... FROM docs`, whose columns are the paths of fields.

`parsing` checks the text, `names` finds the fields, `planning` translates to plans of the query language. What plans
cannot express goes to DuckDB (`typing` and `duckdb_way`), which gets the fields as Arrow columns. `answering` chooses.
"""
