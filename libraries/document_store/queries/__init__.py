"""Execute plans of `libraries.document_queries`: with indexes, over rows and over columns."""
