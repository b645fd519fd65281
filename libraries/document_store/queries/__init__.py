"""Execute plans of the query language `libraries.document_queries` with indexes, over rows, and over columns."""
